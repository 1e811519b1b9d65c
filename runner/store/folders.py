"""The folders of the state: one for each run, with its snapshot, its steps and their attempts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


def default_home() -> Path:
    """RUNNER_HOME, else the user's state folder."""
    if home := os.environ.get("RUNNER_HOME"):
        return Path(home).expanduser().absolute()
    from platformdirs import user_state_path  # not loaded where it is not needed

    return Path(user_state_path("ascend-runner"))


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
