"""What the end-to-end tests stand on: a home of their own, the real CLI, the real stack, a tiny model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from attempt import Begin, beginner
from cli import Cli

from runner.backends.venv import find_stack
from runner.store.folders import default_home

ROOT = Path(__file__).parents[2]
USER_HOME = default_home()
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background job


@pytest.fixture(scope="session")
def stack_python() -> Path:
    root = find_stack(USER_HOME, "cpu")
    if root is None:
        if "CI" in os.environ:
            pytest.fail("the cpu stack is not installed; `make setup` installs it")
        pytest.skip("the cpu stack is not installed; `make setup` installs it")
    return root / "bin" / "python"


@pytest.fixture(scope="session")
def tiny_model(stack_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny") / "model"
    make = ROOT / "jobs" / "tiny" / "make_tiny.py"
    subprocess.run(
        [stack_python, make, "--out", folder], check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh RUNNER_HOME, the real stacks in it; its path has all that breaks careless shell code."""
    folder = tmp_path / "家 with 'quotes' & spaces"
    (folder / "stacks").mkdir(parents=True)
    if (
        root := find_stack(USER_HOME, "cpu")
    ) is not None:  # by its mark, so that no test touches the real one
        (folder / "stacks" / "cpu").mkdir()
        mark = {"stack": "cpu", "digest": "", "root": str(root)}
        (folder / "stacks" / "cpu" / "stack.json").write_text(json.dumps(mark))
    monkeypatch.setenv("RUNNER_HOME", str(folder))
    return folder


@pytest.fixture
def cli(home: Path, tmp_path: Path) -> Iterator[Cli]:
    """The CLI on that home, in a working folder of its own."""
    work = tmp_path / "作业 folder"
    work.mkdir()
    made = Cli(Path(sys.executable).parent / "runner", home, work)
    yield made
    made.stop_all()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start attempts under the Python `entry`."""
    yield from beginner(tmp_path, sys.executable, "-I", "-S")


@pytest.fixture(params=[["python"], ["sh"], ["busybox", "sh"]], ids=" ".join)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Begin]:
    """What the stand-in in shell promises too."""
    program: list[str] = request.param
    if program == ["python"]:
        yield from beginner(tmp_path, sys.executable, "-I", "-S")
        return
    if shutil.which(program[0]) is None:
        pytest.skip(f"there is no {program[0]}")
    yield from beginner(tmp_path, *program, file="entry.sh")
