"""The committed Dockerfiles and locks are what the catalogue says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from runner.core.lockfile import ARCHES, Lock, canonical, read_lock
from runner.data.stacks import CATALOGUE, load_stack, lock_of, locks_of, stack_names
from runner.images.lock import chosen
from runner.images.render import digest, render, rendered, variant_of

NAMES = stack_names()


@pytest.mark.parametrize("name", NAMES)
def test_committed_dockerfiles_are_the_rendered_ones_byte_for_byte(name: str) -> None:
    files = rendered(load_stack(name), CATALOGUE)
    assert files == rendered(load_stack(name), CATALOGUE)
    for file, text in files.items():
        assert (CATALOGUE / "rendered" / file).read_text(encoding="utf-8") == text, "run `make render`"


def test_every_rendered_file_is_of_a_stack() -> None:
    known = {file for name in NAMES for file in rendered(load_stack(name), CATALOGUE)}
    assert {p.name for p in (CATALOGUE / "rendered").iterdir()} == known


def test_every_lock_is_of_a_stack_and_holds_its_pins() -> None:
    known = {lock_of(load_stack(n), arch) for n in NAMES for arch in ARCHES}
    assert set((CATALOGUE / "locks").iterdir()) == known
    for name in NAMES:
        stack = load_stack(name)
        for arch in ARCHES:
            lock = {canonical(p.name): p for p in _lock(lock_of(stack, arch)).packages}
            for package, pin in stack.packages.items():
                if not pin.git:
                    assert lock[canonical(package)].version == chosen(pin, arch).version, (arch, package)


def test_all_but_what_no_index_has_is_locked_by_hash() -> None:
    """Only packages from another index than PyPI may lack one."""
    for path in (CATALOGUE / "locks").iterdir():
        stack = next(s for s in map(load_stack, NAMES) if path.name in locks_of(s))
        for package in _lock(path).packages:
            assert package.hashes or package.index in stack.indexes, (path.name, package)


@pytest.mark.parametrize("name", NAMES)
def test_every_pin_and_target_has_a_source_and_every_override_a_verdict(name: str) -> None:
    stack = load_stack(name)
    assert [n for n, p in stack.packages.items() if not p.source] == []
    assert all(t.source for t in stack.targets.values())
    assert all(o.why and o.verdict for o in stack.resolve.overrides)
    assert all(i.why for i in stack.indexes.values())


@pytest.mark.parametrize("name", [n for n in NAMES if not load_stack(n).cpu])
def test_layers_come_in_the_order_in_which_they_change(name: str) -> None:
    stack = load_stack(name)
    for generation in stack.generations:
        text = (CATALOGUE / "rendered" / f"{name}-{generation}.Dockerfile").read_text(encoding="utf-8")
        order = [
            "apt-get install", "install torch", "install packages", "install vllm\n", "install vllm-ascend",
            "install ms-swift", "install triton-ascend", "runner/entry", "AS verify", "LABEL",
        ]  # fmt: skip
        places = [text.find(word) for word in order]
        present = [p for p in places if p >= 0]
        assert present == sorted(present)
        assert "--mount" not in text  # the classic builder reads it too
        assert not re.search(r"mirrors\.(aliyun|tuna|bfsu)", text)
        assert f'org.ascend-runner.generation="{generation}"' in text


def test_what_is_left_out_is_nowhere() -> None:
    stack = load_stack("swift-4.5-cann9.1")
    slim = variant_of(stack, "A2", without=("vllm", "megatron"))
    text = render(stack, slim, locks_of(stack), CATALOGUE)
    text = text.replace(stack.title, "")
    assert not re.search(r"vllm|megatron|mindspeed", text.replace('without="vllm,megatron"', ""), re.I)
    assert "install ms-swift" in text


def test_cache_mounts_are_there_when_asked_for() -> None:
    stack = load_stack("cpu")
    text = render(stack, variant_of(stack, "cpu", cache=True), locks_of(stack), CATALOGUE)
    assert text.count("--mount=type=cache") >= 4


def test_the_record_in_the_image_names_the_locks() -> None:
    for path in (CATALOGUE / "rendered").glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        locks = locks_of(load_stack(record["stack"]))
        assert record["locks"] == {name: digest(text) for name, text in locks.items()}


def _lock(path: Path) -> Lock:
    return read_lock(path.read_text(encoding="utf-8"), path.name)
