"""The folders of the state: one for each run, with its snapshot, its steps and their attempts."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from runner.errors import UsageError

SNAPSHOT_FILES = 5_000
COPIED_BYTES = 16 << 20  # a larger file is linked, not copied
_LEFT_OUT = {
    ".git",
    ".hg",
    ".venv",
    "venv",
    "__pycache__",
    "node_modules",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
}


def default_home() -> Path:
    """RUNNER_HOME, else the user's state folder."""
    home = os.environ.get("RUNNER_HOME")
    return Path(home).expanduser().absolute() if home else Path(platformdirs.user_state_path("ascend-runner"))


@dataclass(frozen=True)
class RunFolder:
    """One run's folder; everything about the run is in it."""

    path: Path

    @property
    def spec(self) -> Path:
        """The job spec as it was written."""
        return self.path / "job.yaml"

    @property
    def plan(self) -> Path:
        """The compiled plan."""
        return self.path / "plan.json"

    @property
    def snapshot(self) -> Path:
        """The job's folder as it was at submit."""
        return self.path / "snapshot"

    @property
    def events(self) -> Path:
        """One JSON line for each thing that happened."""
        return self.path / "events.jsonl"

    def step(self, name: str) -> Path:
        """A step's folder, the same over all its attempts."""
        return self.path / "steps" / name

    def output(self, name: str) -> Path:
        """Where a step writes what it makes."""
        return self.step(name) / "output"

    def attempt(self, step: str, n: int) -> Path:
        """One try of a step: attempt.json, log.txt, started.json, ready.json, exit.json."""
        return self.step(step) / "attempts" / str(n)


def snapshot(source: Path, target: Path) -> list[str]:
    """Copy the job's folder; files over 16 MiB are linked. Returns the linked ones, relative."""
    linked = []
    count = 0
    home = target.resolve().parents[2]
    state = {home, home / "runs", home / "stacks"}  # when the job file lies beside or above the state folder
    for folder, names, files in os.walk(source):
        here = Path(folder)
        names[:] = sorted(n for n in names if n not in _LEFT_OUT and (here / n).resolve() not in state)
        count += len(files)
        if count > SNAPSHOT_FILES:
            raise UsageError(
                f"the job file's folder {source} has more than {SNAPSHOT_FILES} files, too many for a copy",
                hint="put the job file into a folder of its own, or say `snapshot: false` in it",
            )
        goal = target / here.relative_to(source)
        goal.mkdir(parents=True, exist_ok=True)
        for name in [*files, *[n for n in names if (here / n).is_symlink()]]:
            if _copy(here / name, goal / name):
                linked.append(str((here / name).relative_to(source)))
    return sorted(linked)


def _copy(source: Path, goal: Path) -> bool:
    if not source.exists() or not (source.is_file() or source.is_symlink()):
        return False
    if source.is_symlink() or source.stat().st_size > COPIED_BYTES:
        goal.symlink_to(source.resolve())
        return True
    with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile
        shutil.copy2(source, goal)
    return False
