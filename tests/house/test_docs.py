"""The documents say what holds: their commands run, their links exist, and both languages agree."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.cli.image.build import command as build_command
from runner.cli.image.main import ImageGroup
from runner.cli.main import COMMANDS
from runner.core.job import STEP_CLASSES, JobSpec
from runner.core.site import Site
from runner.core.spec import Model, Mount, Resources, Retry
from runner.core.state import REASONS, exit_code
from runner.data.stacks import stack_names
from runner.errors import RunnerError

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.zh.md")
JOB_SPEC, SITE = ROOT / "docs/guides/job-spec.md", ROOT / "docs/guides/site.md"
MOST_LINES = {"README.md": 235, "README.zh.md": 235, "docs/architecture.md": 150}
MOST_LINES_OF_A_DECISION = 40
MOST_LINES_OF_PYTHON = 400
DRY_TARGETS = {
    "setup",
    "demo",
    "test",
    "check",
    "image GENERATION=A2",
}  # a recipe that calls $(MAKE) would really run under -n


class Fence(NamedTuple):
    """A code block; `tags` are the words after the opening backticks."""

    tags: tuple[str, ...]
    text: str


def fences(document: str) -> list[Fence]:
    """All code blocks of a Markdown text, in order."""
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", document, re.M | re.S)
    return [Fence(tuple(tags.split()), text) for tags, text in found]


def prose(document: str) -> str:
    """The text without its code blocks."""
    return re.sub(r"^```.*?^```$", "", document, flags=re.M | re.S)


def bare(code: str) -> list[str]:
    """The code without comments and empty lines."""
    lines = (re.sub(r"(^|\s+)#\s.*$", "", line).rstrip() for line in code.splitlines())
    return [line for line in lines if line]


@cache
def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def tracked() -> list[str]:
    """Every file of the repository, committed or new, but not ignored."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run(argv, cwd=ROOT, capture_output=True, check=True).stdout
    return sorted({name for name in os.fsdecode(out).split("\0") if (ROOT / name).is_file()})


def markdown() -> list[str]:
    return [name for name in tracked() if name.endswith(".md")]


class Place:
    """A folder that looks like a clone, an empty home, and `runner` first in PATH."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "clone"
        for made in (self.home, self.work):
            made.mkdir()
        for name in {Path(n).parts[0] for n in tracked()} | {".venv"}:
            (self.work / name).symlink_to(ROOT / name)
        self.env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_HOME": str(self.home),
            "RUNNER_SITE": str(self.home / "site.yaml"),
        }

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euxc", script], cwd=self.work, env=self.env, capture_output=True, text=True,
            timeout=60, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.run("runner ps | grep -q 'no open runs' || runner stop")


def without_hardware(line: str) -> str:
    """The same command where there is neither an NPU nor CANN."""
    words = shlex.split(line, comments=True)
    if words[:2] == ["runner", "submit"]:
        return shlex.join(["runner", "plan", *words[2:]])
    if words[:3] == ["runner", "stack", "adopt"]:
        assert words[3] in stack_names(), line
        return shlex.join([*words[:4], sys.prefix])
    return shlex.join(words)


def runnable(fence: Fence) -> str:
    """The block as it can run anywhere: without a network, an NPU or CANN."""
    match fence.tags:
        case ("sh", "network"):
            assert {line.removeprefix("make ") for line in bare(fence.text)} <= DRY_TARGETS, fence.text
            return "\n".join(line.replace("make ", "make -n ", 1) for line in bare(fence.text))
        case ("sh", "npu"):
            return "\n".join(without_hardware(line) for line in bare(fence.text))
    return fence.text


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/guides/images.md"])
def test_commands_run(name: str, place: Place) -> None:
    shell = [f for f in fences(read(name)) if f.tags[:1] == ("sh",)]
    assert shell
    for fence in shell:
        done = place.run(runnable(fence))
        assert done.returncode == 0, f"{name}: {fence.text}\n{done.stdout}\n{done.stderr}"


def test_every_code_block_says_what_it_is() -> None:
    known = {("sh",), ("sh", "network"), ("sh", "npu"), ("text",), ("yaml",), ("python",)}
    for name in markdown():
        for fence in fences(read(name)):
            assert fence.tags in known, f"{name}: ```{' '.join(fence.tags)}"


def test_both_readmes_have_the_same_headings() -> None:
    levels = [re.findall(r"^(#+) \S", prose(read(name)), re.M) for name in READMES]
    assert levels[0] == levels[1]
    assert len(levels[0]) > 5


def test_both_readmes_have_the_same_code() -> None:
    english, chinese = ([(f.tags, bare(f.text)) for f in fences(read(name))] for name in READMES)
    assert english == chinese


def test_both_readmes_have_the_same_table_rows() -> None:
    english, chinese = (re.findall(r"^\|", prose(read(name)), re.M) for name in READMES)
    assert len(english) == len(chinese)


@pytest.mark.parametrize("name", READMES)
def test_every_example_job_is_named(name: str) -> None:
    rows = "\n".join(line for line in prose(read(name)).splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`([\w.-]+)`", rows))
    assert named == {p.stem for p in (ROOT / "jobs").glob("*.yaml")}


def exit_codes() -> set[str]:
    """What the code can return: of errors, and of runs for every way a step can end."""
    found = {str(e.exit_code) for e in (RunnerError, *RunnerError.__subclasses__())}
    for state in ("SUCCEEDED", "FAILED", "CANCELLED", "LOST"):
        found |= {str(exit_code(state, reason, None, None)) for reason in REASONS}
    assert exit_code("FAILED", "signal", 137, 9) == 128 + 9
    return found | {"128+n"}


@pytest.mark.parametrize("name", READMES)
def test_exit_code_table_has_every_code(name: str) -> None:
    rows = re.findall(r"^\| ([^|`]+?) \|", prose(read(name)), re.M)
    assert exit_codes() <= set(rows)
    assert {row for row in rows if re.match(r"\d", row)} <= exit_codes()


def commands_in(document: str) -> set[str]:
    return set(re.findall(r"(?:^|`)runner ([a-z]+)", document, re.M))


def test_no_document_names_a_command_that_does_not_exist() -> None:
    assert {name: wrong for name in markdown() if (wrong := commands_in(read(name)) - set(COMMANDS))} == {}


def test_the_image_guide_names_every_command_and_option_of_the_builder() -> None:
    guide = read("docs/guides/images.md")
    assert set(re.findall(r"build_image\.py ([a-z-]+)", guide)) >= set(ImageGroup.table) - {"push", "render"}
    for name in markdown():
        named = set(re.findall(r"`?(?:python )?build_image\.py ([a-z][a-z-]*)", read(name)))
        assert named <= set(ImageGroup.table), name
    options = {o for p in build_command.params for o in p.opts if not getattr(p, "hidden", False)}
    left = {"-v", "--verbose", "--json", "--dry-run", "--mirror", "--push", "--help", "-h"}
    assert {o for o in options - left if f"`{o}" not in guide} == set()
    known = options | {"--near", "--to", "--user", "--require-hashes"}
    assert set(re.findall(r"`(--[a-z-]+)(?![a-z_-])", guide)) <= known


@pytest.mark.parametrize("name", READMES)
def test_readme_shows_the_commands_of_a_run(name: str) -> None:
    assert set(COMMANDS) - {"schema"} <= commands_in(read(name))


def anchors(document: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", prose(document), re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


@pytest.mark.parametrize("name", markdown())
def test_relative_links_exist(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(read(name))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (ROOT / name).parent / path if path else ROOT / name
        assert linked.exists(), f"{name}: {target}"
        assert not anchor or anchor in anchors(linked.read_text(encoding="utf-8")), f"{name}: {target}"


@pytest.mark.parametrize("name", markdown())
def test_named_files_exist(name: str) -> None:
    paths = re.findall(r"`((?:runner|tests|jobs|docs|Dockerfiles)/[\w./-]*)`", prose(read(name)))
    assert [p for p in paths if not (ROOT / p).exists()] == []


def test_documents_are_short() -> None:
    decisions = [n for n in markdown() if n.startswith("docs/decisions/")]
    limits = {**MOST_LINES, **dict.fromkeys(decisions, MOST_LINES_OF_A_DECISION)}
    assert len(decisions) > 5
    assert {
        n: len(read(n).splitlines()) for n, most in limits.items() if len(read(n).splitlines()) > most
    } == {}


def test_python_files_are_short() -> None:
    sizes = {n: len(read(n).splitlines()) for n in tracked() if n.endswith(".py")}
    assert len(sizes) > 50
    assert {n: size for n, size in sizes.items() if size > MOST_LINES_OF_PYTHON} == {}


def test_job_guide_names_every_key_and_kind() -> None:
    text = JOB_SPEC.read_text(encoding="utf-8")
    models: list[type[Model]] = [JobSpec, Resources, Mount, Retry, *STEP_CLASSES.values()]
    keys = {key for model in models for key in model.model_fields} | set(STEP_CLASSES)
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_job_guide_names_every_output() -> None:
    text = JOB_SPEC.read_text(encoding="utf-8")
    plans = (ROOT / "tests/golden").glob("*.json")
    assert {o for p in plans for o in outputs_in(p) if f"`{o}`" not in text} == set()


def outputs_in(plan: Path) -> set[str]:
    import json

    return {o for step in json.loads(plan.read_text(encoding="utf-8"))["steps"] for o in step["outputs"]}


def test_site_guide_names_every_key() -> None:
    text = SITE.read_text(encoding="utf-8")
    nested = (f.annotation for f in Site.model_fields.values())
    models = [Site, *(m for m in nested if isinstance(m, type) and issubclass(m, Model))]
    assert len(models) > 4
    assert {key for model in models for key in model.model_fields if key not in text} == set()


def test_troubleshooting_names_every_reason() -> None:
    text = read("docs/guides/troubleshooting.md")
    assert {reason for reason in REASONS if f"`{reason}`" not in text} == set()
