"""Runs, steps and attempts as the index knows them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    """One submission; `point` is what the job's matrix says for it, `grp` the runs submitted with it."""

    id: int
    name: str
    state: str
    file: str
    created: float
    ended: float | None
    stop: bool
    priority: int
    grp: str | None
    point: Mapping[str, Any]
    resume: bool
    reopened: float | None
    sealed: bool
    bytes: int | None


@dataclass(frozen=True)
class Step:
    """A node of a run's graph; `why` says what a waiting step waits for."""

    run: int
    name: str
    idx: int
    kind: str
    state: str
    reason: str | None
    message: str | None
    code: int | None
    signal: int | None
    why: str | None
    outputs: Mapping[str, str]
    started: float | None
    ended: float | None
    retry_at: float | None
    base: int  # attempts before the last `retry`


@dataclass(frozen=True)
class AttemptRow:
    """One try of a step; `placed` holds its ports and devices."""

    run: int
    step: str
    n: int
    state: str
    intent: str | None
    reason: str | None
    message: str | None
    code: int | None
    signal: int | None
    placed: Mapping[str, Any]
    started: float
    ended: float | None

    @property
    def key(self) -> str:
        """The deterministic name of the attempt, also in its processes' environment."""
        return f"{self.run}.{self.step}.{self.n}"


def run_of(row: sqlite3.Row) -> Run:
    """A row of `runs`."""
    flags = {name: bool(row[name]) for name in ("stop", "resume", "sealed")}
    return Run(**{**dict(row), **flags, "point": json.loads(row["point"])})


def step_of(row: sqlite3.Row) -> Step:
    """A row of `steps`."""
    return Step(**{**dict(row), "outputs": json.loads(row["outputs"])})


def attempt_of(row: sqlite3.Row) -> AttemptRow:
    """A row of `attempts`."""
    return AttemptRow(**{**dict(row), "placed": json.loads(row["placed"])})
