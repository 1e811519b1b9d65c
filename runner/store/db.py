"""The index of all runs: one SQLite file, the only place that speaks SQL."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.core.plan import Plan
from runner.core.state import STEP_ENDS, attempt_may, run_state, step_may
from runner.errors import NoSuchRunError, RunnerError, UnreachableError
from runner.store.folders import RunFolder

VERSION = 1
_SCHEMA = Path(__file__).with_name("schema.sql")


@dataclass(frozen=True)
class Run:
    """A run as the index knows it."""

    id: int
    name: str
    state: str
    file: str
    created: float
    ended: float | None
    stop: bool


@dataclass(frozen=True)
class Step:
    """A step as the index knows it; `why` says what a waiting step waits for."""

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


class Store:
    """All runs of one home folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.open()

    def open(self) -> None:
        """Open the file; UnreachableError when the folder cannot be used."""
        home = self.home
        try:
            home.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(home / "state.db", timeout=30, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._migrate()
        except (OSError, sqlite3.Error) as e:
            raise UnreachableError(
                f"cannot use the state folder {home}: {e}",
                hint="set RUNNER_HOME to a local folder that you may write to",
            ) from e

    def close(self) -> None:
        """Let go of the file; needed before a fork, SQLite's locks do not survive one."""
        self._db.close()

    def folder(self, run: int) -> RunFolder:
        """The run's folder."""
        return RunFolder(self.home / "runs" / f"{run:06d}")

    def _migrate(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise UnreachableError(
                f"{self.home}/state.db was written by a newer runner (state version {version})",
                hint="upgrade the runner",
            )
        if version == VERSION:
            return
        with self.transaction():
            if self._db.execute("PRAGMA user_version").fetchone()[0] == 0:
                for statement in _SCHEMA.read_text(encoding="utf-8").split(";\n"):
                    self._db.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and nobody else writes meanwhile; UnreachableError when it cannot be written."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as e:
            message = f"cannot write {self.home}/state.db: {e}"
            raise UnreachableError(message, hint="free disk space or set RUNNER_HOME") from e
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def add_run(self, plan: Plan, file: str) -> int:
        """A NEW run with all its steps WAITING; its id. Nobody drives it before `queue`."""
        with self.transaction():
            cursor = self._db.execute(
                "INSERT INTO runs(name, state, file, created) VALUES (?, 'NEW', ?, ?)",
                (plan.name, file, time.time()),
            )
            run = int(cursor.lastrowid or 0)
            for i, step in enumerate(plan.steps):
                self._db.execute(
                    "INSERT INTO steps(run, name, idx, kind, state) VALUES (?, ?, ?, ?, 'WAITING')",
                    (run, step.name, i, step.kind),
                )
        return run

    def queue(self, run: int) -> None:
        """Let the engine have a NEW run."""
        with self.transaction():
            self._db.execute("UPDATE runs SET state = 'QUEUED' WHERE id = ? AND state = 'NEW'", (run,))

    def drop_run(self, run: int) -> None:
        """Forget a run that could not be written out."""
        with self.transaction():
            for table, column in (("runs", "id"), ("steps", "run"), ("attempts", "run"), ("leases", "run")):
                self._db.execute(f"DELETE FROM {table} WHERE {column} = ?", (run,))

    def run(self, run: int) -> Run:
        """One run; NoSuchRunError when there is none."""
        row = self._db.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone()
        if row is None:
            raise NoSuchRunError(f"there is no run {run}", hint="`runner ps --all` lists them")
        return _run(row)

    def has_ended(self, run: int) -> bool:
        """Whether a run has ended; one that is not known counts as ended."""
        row = self._db.execute("SELECT ended FROM runs WHERE id = ?", (run,)).fetchone()
        return row is None or row["ended"] is not None

    def find(self, text: str | None) -> Run:
        """A run by number or by name (the newest of that name); without either the newest run."""
        if text is not None and text.isdigit():
            return self.run(int(text))
        query = "SELECT * FROM runs WHERE state != 'NEW' AND (? IS NULL OR name = ?) ORDER BY id DESC LIMIT 1"
        row = self._db.execute(query, (text, text)).fetchone()
        if row is None:
            raise NoSuchRunError(
                f"there is no run '{text}'" if text else "there are no runs yet",
                hint="`runner ps --all` lists them",
            )
        return _run(row)

    def runs(self, *, ended: bool = True, limit: int = 50) -> list[Run]:
        """The newest runs first."""
        where = "WHERE state != 'NEW'" + ("" if ended else " AND ended IS NULL")
        return [
            _run(r)
            for r in self._db.execute(f"SELECT * FROM runs {where} ORDER BY id DESC LIMIT ?", (limit,))
        ]

    def open_runs(self) -> list[Run]:
        """The runs that have not ended, oldest first."""
        query = "SELECT * FROM runs WHERE ended IS NULL AND state != 'NEW' ORDER BY id"
        return [_run(r) for r in self._db.execute(query)]

    def steps(self, run: int) -> list[Step]:
        """A run's steps in the order they were written."""
        return [_step(r) for r in self._db.execute("SELECT * FROM steps WHERE run = ? ORDER BY idx", (run,))]

    def attempts(self, run: int, step: str | None = None) -> list[AttemptRow]:
        """The attempts of a run, or of one of its steps, in order."""
        rows = self._db.execute(
            "SELECT * FROM attempts WHERE run = ? AND (? IS NULL OR step = ?) ORDER BY started, n",
            (run, step, step),
        )
        return [_attempt(r) for r in rows]

    def ask_stop(self, run: int) -> None:
        """Note that the user wants this run stopped; the engine does it."""
        with self.transaction():
            self._db.execute("UPDATE runs SET stop = 1 WHERE id = ?", (run,))

    def move_step(self, step: Step, state: str, **columns: Any) -> Step:
        """Put a step into a new state, by the table; the run's state follows."""
        with self.transaction():
            before = self._db.execute(
                "SELECT state FROM steps WHERE run = ? AND name = ?", (step.run, step.name)
            ).fetchone()[0]
            if before != state and not step_may(before, state):
                raise RunnerError(f"step {step.name} of run {step.run} cannot go from {before} to {state}")
            self._set("steps", {"state": state, **columns}, "run = ? AND name = ?", (step.run, step.name))
            states = [r[0] for r in self._db.execute("SELECT state FROM steps WHERE run = ?", (step.run,))]
            whole = run_state(states)
            ended = time.time() if all(s in STEP_ENDS for s in states) else None
            self._set("runs", {"state": whole, "ended": ended}, "id = ?", (step.run,))
            row = self._db.execute(
                "SELECT * FROM steps WHERE run = ? AND name = ?", (step.run, step.name)
            ).fetchone()
        return _step(row)

    def add_attempt(self, step: Step, placed: Mapping[str, Any]) -> AttemptRow:
        """A STARTING attempt, written before anything is launched."""
        with self.transaction():
            last = self._db.execute(
                "SELECT max(n) FROM attempts WHERE run = ? AND step = ?", (step.run, step.name)
            ).fetchone()[0]
            self._db.execute(
                "INSERT INTO attempts(run, step, n, state, placed, started) VALUES (?, ?, ?, ?, ?, ?)",
                (step.run, step.name, (last or 0) + 1, "STARTING", json.dumps(placed), time.time()),
            )
        return self.attempts(step.run, step.name)[-1]

    def move_attempt(self, attempt: AttemptRow, state: str, **columns: Any) -> AttemptRow:
        """Put an attempt into a new state, by the table."""
        key = (attempt.run, attempt.step, attempt.n)
        with self.transaction():
            before = self._db.execute(
                "SELECT state FROM attempts WHERE run = ? AND step = ? AND n = ?", key
            ).fetchone()[0]
            if before != state and not attempt_may(before, state):
                raise RunnerError(f"attempt {attempt.key} cannot go from {before} to {state}")
            self._set("attempts", {"state": state, **columns}, "run = ? AND step = ? AND n = ?", key)
            row = self._db.execute(
                "SELECT * FROM attempts WHERE run = ? AND step = ? AND n = ?", key
            ).fetchone()
        return _attempt(row)

    def leases(self) -> dict[str, tuple[int, str]]:
        """Every leased resource (`port:8000`, `npu:3`) and the run and step that hold it."""
        return {r["resource"]: (r["run"], r["step"]) for r in self._db.execute("SELECT * FROM leases")}

    def lease(self, run: int, step: str, resources: list[str]) -> bool:
        """Take all of these, or none when one of them is taken."""
        with self.transaction():
            marks = ",".join("?" * len(resources))
            if self._db.execute(
                f"SELECT 1 FROM leases WHERE resource IN ({marks}) LIMIT 1", resources
            ).fetchone():
                return False
            token = self._db.execute("UPDATE tokens SET next = next + 1 RETURNING next").fetchone()[0]
            self._db.executemany(
                "INSERT INTO leases VALUES (?, ?, ?, ?)", [(r, token, run, step) for r in resources]
            )
        return True

    def release(self, run: int, step: str) -> None:
        """Let go of all that a step holds."""
        with self.transaction():
            self._db.execute("DELETE FROM leases WHERE run = ? AND step = ?", (run, step))

    def _set(self, table: str, columns: Mapping[str, Any], where: str, key: tuple[Any, ...]) -> None:
        names = ", ".join(f"{c} = ?" for c in columns)
        self._db.execute(f"UPDATE {table} SET {names} WHERE {where}", (*columns.values(), *key))


def _run(row: sqlite3.Row) -> Run:
    return Run(**{**dict(row), "stop": bool(row["stop"])})


def _step(row: sqlite3.Row) -> Step:
    return Step(**{**dict(row), "outputs": json.loads(row["outputs"])})


def _attempt(row: sqlite3.Row) -> AttemptRow:
    return AttemptRow(**{**dict(row), "placed": json.loads(row["placed"])})
