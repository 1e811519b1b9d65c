"""What is refused before an image is built: each stack passes, and each thing that breaks it is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from packaging.version import Version

from runner.core.imagecheck import Choice, check_image
from runner.core.stack import Stack
from runner.data.stacks import load_stack, stack_names
from runner.data.support import load_hardware, load_support, load_unsupported
from runner.errors import Finding

ALL = [(name, generation) for name in stack_names() for generation in load_stack(name).generations]


def choice(stack: Stack, generation: str, **changes: Any) -> Choice:
    target = stack.targets[generation]  # type: ignore[index]
    os = changes.get("os") or next(iter(target.bases))
    own = {
        "soc": target.soc,
        "base": target.bases.get(os, ""),
        "os": os,
        "python": stack.python,
        "arch": "arm",
    }
    return Choice(generation=generation, **{**own, **changes})


def check(stack: Stack, what: Choice) -> list[Finding]:
    return check_image(stack, what, load_support(), load_hardware(), load_unsupported())


def errors(stack: Stack, what: Choice) -> list[Finding]:
    return [f for f in check(stack, what) if f.severity == "error"]


def pinned(stack: Stack, **versions: str | None) -> Stack:
    """The stack with other versions; None takes a package out."""
    packages = dict(stack.packages)
    for name, version in ((k.replace("_", "-"), v) for k, v in versions.items()):
        own = next(n for n in packages if n.replace("_", "-").lower() == name.lower())
        if version is None:
            del packages[own]
        else:
            packages[own] = packages[own].model_copy(update={"version": version})
    return stack.model_copy(update={"packages": packages, "components": {}})


@pytest.mark.parametrize("arch", ["arm", "x86"])
@pytest.mark.parametrize(("name", "generation"), ALL)
def test_every_stack_can_be_built(name: str, generation: str, arch: str) -> None:
    stack = load_stack(name)
    for os in stack.targets[generation].bases:  # type: ignore[index]
        assert errors(stack, choice(stack, generation, arch=arch, os=os)) == []
    for component in stack.components:
        assert errors(stack, choice(stack, generation, arch=arch, without=(component,))) == []


GUIDE, NEW, A2 = "swift-4.3-cann9.0", "swift-4.5-cann9.1", "A2"
A3_BASE = "quay.io/ascend/cann:9.0.0-a3-ubuntu22.04-py3.11"
CHOICES: list[tuple[str, str, dict[str, Any], str, list[str]]] = [
    # what modelscope's documented example does: an image for A2 on the base of A3
    (GUIDE, "A2", {"base": A3_BASE}, "base-chip", ["A3", "A2", "ascend910b1", "9.0.0-910b-"]),
    (GUIDE, "A2", {"soc": "ascend910_9391"}, "soc", ["ascend910_9391 is A3", "A2", "ascend910b1"]),
    (GUIDE, "A2", {"soc": "ascend910b7"}, "unknown-soc", ["ascend910b7", "did you mean", "ascend910b1"]),
    (GUIDE, "A3", {"soc": "ascend310p1"}, "unsupported-product", ["310P", "inference"]),
    (GUIDE, "A2", {"os": "openeuler24.03", "base": "quay.io/ascend/cann:9.0.0-910b-ubuntu22.04-py3.11"},
     "base-os", ["ubuntu22.04", "openeuler24.03"]),
    (GUIDE, "A2", {"base": "quay.io/ascend/cann:9.1.0-beta.3-910b-ubuntu22.04-py3.11"},
     "base-cann", ["9.1.0-beta.3", "9.0.0"]),
    (GUIDE, "A2", {"python": "3.12"}, "python", ["3.12", "3.11"]),
    (NEW, "A2", {"python": "3.9"}, "python-allowed", ["3.9", "vllm-ascend v0.23.0", "3.12"]),
    (GUIDE, "A2", {"without": ("vlm",)}, "unknown-component", ["vlm", "did you mean", "vllm"]),
    (GUIDE, "A2", {"cache_mounts": True, "buildkit": False}, "cache-mounts", ["BuildKit"]),
    (GUIDE, "A2", {"arch": "both", "emulation": False}, "both-arches", ["emulation", "--arch arm"]),
    (GUIDE, "A2", {"swift_ref": "v4.5.3"}, "ms-swift-mcore-bridge", ["v4.5.3", "1.5.2"]),
    (GUIDE, "A2", {"swift_ref": "v4.3.O"}, "unknown-version", ["4.3.O", "did you mean"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "generation", "changes", "code", "says"), CHOICES, ids=lambda v: str(v)[:40]
)
def test_a_choice_that_cannot_work_is_refused(
    name: str, generation: str, changes: dict[str, Any], code: str, says: list[str]
) -> None:
    stack = load_stack(name)
    told(errors(stack, choice(stack, generation, **changes)), code, says)


def told(found: list[Finding], code: str, says: list[str]) -> None:
    texts = [f"{f.message} / {f.hint}" for f in found if f.code == code]
    assert any(all(word in text for word in says) for text in texts), [
        (f.code, f.message, f.hint) for f in found
    ]


def without_git(stack: Stack, name: str) -> Stack:
    pin = stack.packages[name].model_copy(update={"git": None, "commit": None, "version": "0.16.0"})
    return stack.model_copy(update={"packages": {**stack.packages, name: pin}})


def unbounded(stack: Stack) -> Stack:
    resolve = stack.resolve.model_copy(update={"constraints": [], "exclude_newer": None})
    return stack.model_copy(update={"resolve": resolve})


PINS: list[tuple[str, str, Callable[[Stack], Stack], str, list[str]]] = [
    (GUIDE, A2, lambda s: pinned(s, torch="2.10.0"), "torch-npu", ["2.10.0", "pin torch 2.9.0"]),
    (GUIDE, A2, lambda s: pinned(s, torchvision="0.25.0"), "torch-family", ["0.25.0", "0.24.0"]),
    (GUIDE, A2, lambda s: pinned(s, torch_npu="2.9.0.post4"), "torch-npu-cann", ["2.9.0.post4", "9.0.0"]),
    (GUIDE, A2, lambda s: pinned(s, vllm="0.23.0"), "vllm-ascend-vllm", ["v0.18.0", "vllm 0.18.0", "0.23.0"]),
    (GUIDE, A2, lambda s: pinned(s, transformers="5.20.0"), "ms-swift-transformers", ["5.20.0", "v4.3.2"]),
    (NEW, A2, lambda s: pinned(s, peft="0.30.0"), "ms-swift-peft", ["0.30.0", "v4.5.3"]),
    (NEW, A2, lambda s: pinned(s, mcore_bridge="1.0.0"), "ms-swift-mcore-bridge", ["1.0.0", "v4.5.3"]),
    (NEW, A2, lambda s: pinned(s, vllm_ascend="0.23.O"), "unknown-version", ["0.23.O", "did you mean"]),
    (NEW, A2, lambda s: s.model_copy(update={"cann": "9.1.O"}), "unknown-version", ["9.1.O"]),
    (NEW, "950", lambda s: s.model_copy(update={"cann": "8.5.0"}), "generation-cann", ["CANN 9.0.0"]),
    (NEW, "950", lambda s: pinned(s, vllm_ascend="0.18.0"), "vllm-ascend-950", ["v0.18.0", "v0.23.0"]),
    (NEW, A2, lambda s: without_git(s, "MindSpeed"), "git-only", ["PyPI", "git and commit"]),
    (GUIDE, A2, unbounded, "undeclared-bound", ["numpy", "pyarrow<26"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "generation", "broken", "code", "says"), PINS, ids=lambda v: str(v)[:30])
def test_pins_that_do_not_go_together_are_refused(
    name: str, generation: str, broken: Callable[[Stack], Stack], code: str, says: list[str]
) -> None:
    stack = broken(load_stack(name))
    told(errors(stack, choice(stack, generation)), code, says)


def test_torch_for_x86_is_the_cpu_build() -> None:
    stack = load_stack(NEW)
    npu = load_support().torch_npu.local_build
    old = load_stack(GUIDE)
    for s in (stack, old):
        plain = s.packages["torch"].model_copy(update={"x86": None, "index": None})
        changed = s.model_copy(update={"packages": {**s.packages, "torch": plain}})
        version = s.version("torch-npu") or ""
        wrong = [f.code for f in errors(changed, choice(s, "A2", arch="x86"))]
        assert ("x86-torch" in wrong) == (Version(version) < Version(npu.below))
        assert "x86-torch" not in [f.code for f in errors(changed, choice(s, "A2", arch="arm"))]


def test_a_release_that_is_newer_than_the_tables_is_a_warning() -> None:
    stack = pinned(load_stack(NEW), vllm_ascend="0.27.0")
    found = [f for f in check(stack, choice(stack, "A2")) if f.code == "unknown-version"]
    assert [f.severity for f in found] == ["warning"]
    assert "nothing is checked against it" in str(found[0].hint)


@pytest.mark.parametrize("word", ["", "九百一十", "a" * 500, "quay.io/x:y:z", "\x00", "latest"])
def test_odd_words_are_findings_and_never_a_crash(word: str) -> None:
    stack = load_stack(GUIDE)
    for changes in (
        {"base": word},
        {"soc": word or None},
        {"os": word},
        {"swift_ref": word},
        {"without": (word,)},
    ):
        check(stack, choice(stack, "A2", **changes))
    assert check(stack, choice(stack, "A2", base=word))
