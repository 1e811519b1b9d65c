"""The index of all runs of a home: the only place that knows its tables."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.core.state import STEP_ENDS, attempt_may, run_may, run_state, step_may
from runner.errors import NoSuchRunError, RunnerError, UsageError
from runner.store.database import Database
from runner.store.folders import RunFolder
from runner.store.rows import AttemptRow, Run, Step, attempt_of, run_of, step_of

if TYPE_CHECKING:
    from runner.core.plan import Plan  # to load what checks plans is felt in every command

__all__ = ["AttemptRow", "Run", "Step", "Store"]
_KNOWN = "state != 'NEW'"  # a NEW run is still being written, or its submit was killed
_IN_TURN = "ORDER BY priority DESC, id"


class Store(Database):
    """All runs of one home folder."""

    def folder(self, run: int) -> RunFolder:
        """The run's folder."""
        return RunFolder(self.home / "runs" / f"{run:06d}")

    def add_run(
        self, plan: Plan, file: str, *, priority: int = 0, point: Mapping[str, Any] | None = None
    ) -> int:
        """A NEW run with all its steps WAITING; its id. Nobody drives it before `queue`."""
        with self.transaction() as db:
            cursor = db.execute(
                "INSERT INTO runs(name, state, file, created, priority, point) VALUES (?, 'NEW', ?, ?, ?, ?)",
                (plan.name, file, time.time(), priority, json.dumps(dict(point or {}), ensure_ascii=False)),
            )
            run = int(cursor.lastrowid or 0)
            steps = [(run, step.name, i, step.kind) for i, step in enumerate(plan.steps)]
            db.executemany(
                "INSERT INTO steps(run, name, idx, kind, state) VALUES (?, ?, ?, ?, 'WAITING')", steps
            )
        return run

    def queue(self, run: int, *, group: str | None = None, held: bool = False) -> None:
        """Let the engine have a NEW run, or hold it back until it is released."""
        with self.transaction() as db:
            if held:
                db.execute("UPDATE steps SET state = 'HELD' WHERE run = ?", (run,))
            self._set(db, "runs", {"grp": group}, "id = ?", (run,))
            self._follow(db, run)

    def release(self, run: int) -> None:
        """Let a held run go on."""
        held = [s for s in self.steps(run) if s.state == "HELD"]
        with self.transaction() as db:
            for step in held:
                self._move(db, step, "WAITING", {})

    def reopen(self, run: int, steps: Iterable[str], *, resume: bool, ready: Callable[[], None]) -> None:
        """Open an ended run again: these steps wait for another try, the others stay as they are.

        `ready` is called before anybody sees it open. UsageError when it is open already.
        """
        chosen = set(steps)
        blank = dict.fromkeys(("reason", "message", "code", "signal", "why", "started", "ended", "retry_at"))
        opened = {"stop": 0, "resume": int(resume), "reopened": time.time(), "sealed": 0}
        with self.transaction() as db:
            if not self.has_ended(run):
                raise UsageError(f"run {run} was opened again by another command meanwhile")
            ready()
            for step in (s for s in self.steps(run) if s.name in chosen):
                tries = len(self.attempts(run, step.name))
                self._move(db, step, "WAITING", {**blank, "outputs": "{}", "base": tries})
            self._set(db, "runs", opened, "id = ?", (run,))

    def seal(self, run: Run, size: int) -> None:
        """The manifest is complete and the folder takes so many bytes, unless the run was opened again."""
        with self.transaction() as db:
            query = "UPDATE runs SET sealed = 1, bytes = ? WHERE id = ? AND ended = ?"
            db.execute(query, (size, run.id, run.ended))

    def drop_run(self, run: int) -> None:
        """Forget a run; UsageError when it is open."""
        with self.transaction() as db:
            query = "SELECT 1 FROM runs WHERE id = ? AND ended IS NULL AND state != 'NEW'"
            if db.execute(query, (run,)).fetchone():
                raise UsageError(f"run {run} is open", hint=f"`runner stop {run}` ends it")
            for table, column in (("runs", "id"), ("steps", "run"), ("attempts", "run"), ("leases", "run")):
                db.execute(f"DELETE FROM {table} WHERE {column} = ?", (run,))

    def run(self, run: int) -> Run:
        """One run; NoSuchRunError when there is none."""
        row = self.row("SELECT * FROM runs WHERE id = ?", (run,))
        if row is None:
            raise NoSuchRunError(f"there is no run {run}", hint="`runner ps --all` lists them")
        return run_of(row)

    def has_ended(self, run: int) -> bool:
        """Whether a run has ended; one that is not known counts as ended."""
        row = self.row("SELECT ended FROM runs WHERE id = ?", (run,))
        return row is None or row["ended"] is not None

    def find(self, text: str | None) -> Run:
        """A run by number or by name (the newest of that name); without either the newest run."""
        if text is not None and text.isdecimal() and text.isascii():
            return self.run(min(int(text), 2**62))
        query = f"SELECT * FROM runs WHERE {_KNOWN} AND (? IS NULL OR name = ?) ORDER BY id DESC LIMIT 1"
        row = self.row(query, (text, text))
        if row is None:
            said = f"there is no run '{text}'" if text else "there are no runs yet"
            raise NoSuchRunError(said, hint="`runner ps --all` lists them")
        return run_of(row)

    def group(self, text: str) -> list[Run]:
        """The runs of a group, by its whole name (`sweep.12`) or the newest of that name (`sweep`)."""
        whole = self.row(
            f"SELECT grp FROM runs WHERE {_KNOWN} AND (grp = ? OR substr(grp, 1, ?) = ?)"
            " ORDER BY id DESC LIMIT 1",
            (text, len(text) + 1, f"{text}."),
        )
        if whole is None:
            raise NoSuchRunError(f"there is no group '{text}'", hint="`runner ps --all --wide` names them")
        rows = self.rows(f"SELECT * FROM runs WHERE {_KNOWN} AND grp = ? ORDER BY id", (whole["grp"],))
        return [run_of(r) for r in rows]

    def runs(self, *, ended: bool = True, limit: int = 50) -> list[Run]:
        """The newest runs first."""
        only = "" if ended else " AND ended IS NULL"
        query = f"SELECT * FROM runs WHERE {_KNOWN}{only} ORDER BY id DESC LIMIT ?"
        return [run_of(r) for r in self.rows(query, (limit,))]

    def open_runs(self) -> list[Run]:
        """The runs that have not ended, in the order in which they may start."""
        return [
            run_of(r) for r in self.rows(f"SELECT * FROM runs WHERE ended IS NULL AND {_KNOWN} {_IN_TURN}")
        ]

    def has_open(self) -> bool:
        """Whether there is a run to drive: one that has not ended and is not held."""
        only = "ended IS NULL AND (state != 'HELD' OR stop = 1)"
        return self.row(f"SELECT 1 FROM runs WHERE {_KNOWN} AND {only} LIMIT 1") is not None

    def half_written(self) -> list[int]:
        """The NEW runs: a submit is writing them, or was killed."""
        return [r["id"] for r in self.rows("SELECT id FROM runs WHERE state = 'NEW'")]

    def unsealed(self) -> list[Run]:
        """The runs that have ended and whose manifest is not complete."""
        query = f"SELECT * FROM runs WHERE sealed = 0 AND ended IS NOT NULL AND {_KNOWN} ORDER BY id"
        return [run_of(r) for r in self.rows(query)]

    def steps(self, run: int) -> list[Step]:
        """A run's steps in the order they were written."""
        return [step_of(r) for r in self.rows("SELECT * FROM steps WHERE run = ? ORDER BY idx", (run,))]

    def attempts(self, run: int, step: str | None = None) -> list[AttemptRow]:
        """The attempts of a run, or of one of its steps, in order."""
        query = "SELECT * FROM attempts WHERE run = ? AND (? IS NULL OR step = ?) ORDER BY rowid"
        return [attempt_of(r) for r in self.rows(query, (run, step, step))]

    def living(self) -> list[AttemptRow]:
        """The attempts of open runs that have not ended."""
        query = (
            "SELECT a.* FROM runs r JOIN attempts a ON a.run = r.id"
            f" WHERE r.ended IS NULL AND r.{_KNOWN} AND a.state != 'ENDED'"
        )
        return [attempt_of(r) for r in self.rows(query)]

    def ask_stop(self, run: int) -> None:
        """Note that the user wants this run stopped; the engine does it."""
        with self.transaction() as db:
            db.execute("UPDATE runs SET stop = 1 WHERE id = ?", (run,))

    def move_step(self, step: Step, state: str, **columns: Any) -> Step:
        """Put a step into a new state, by the table; the run's state follows."""
        with self.transaction() as db:
            return self._move(db, step, state, columns)

    def _move(self, db: Any, step: Step, state: str, columns: Mapping[str, Any]) -> Step:
        key, where = (step.run, step.name), "run = ? AND name = ?"
        before = db.execute(f"SELECT state FROM steps WHERE {where}", key).fetchone()[0]
        if before != state and not step_may(before, state):
            raise RunnerError(f"step {step.name} of run {step.run} cannot go from {before} to {state}")
        if state in STEP_ENDS:
            db.execute("DELETE FROM leases WHERE run = ? AND step = ?", key)
        self._set(db, "steps", {"state": state, **columns}, where, key)
        if before != state:
            self._follow(db, step.run)
        return step_of(db.execute(f"SELECT * FROM steps WHERE {where}", key).fetchone())

    def _follow(self, db: Any, run: int) -> None:
        states = [r[0] for r in db.execute("SELECT state FROM steps WHERE run = ?", (run,))]
        before = db.execute("SELECT state FROM runs WHERE id = ?", (run,)).fetchone()[0]
        after = run_state(states)
        if before != after and not run_may(before, after):
            raise RunnerError(f"run {run} cannot go from {before} to {after}")
        ended = time.time() if all(s in STEP_ENDS for s in states) else None
        self._set(db, "runs", {"state": after, "ended": ended}, "id = ?", (run,))

    def add_attempt(self, step: Step, placed: Mapping[str, Any]) -> AttemptRow:
        """A STARTING attempt, written before anything is launched."""
        key = (step.run, step.name)
        with self.transaction() as db:
            last = db.execute("SELECT max(n) FROM attempts WHERE run = ? AND step = ?", key).fetchone()[0]
            db.execute(
                "INSERT INTO attempts(run, step, n, state, placed, started)"
                " VALUES (?, ?, ?, 'STARTING', ?, ?)",
                (*key, (last or 0) + 1, json.dumps(placed), time.time()),
            )
        return self.attempts(step.run, step.name)[-1]

    def move_attempt(self, attempt: AttemptRow, state: str, **columns: Any) -> AttemptRow:
        """Put an attempt into a new state, by the table."""
        with self.transaction() as db:
            return self._move_attempt(db, attempt, state, columns)

    def end_attempt(self, attempt: AttemptRow, step: Step, state: str, **columns: Any) -> Step:
        """End an attempt, give back what its step holds, and move the step: all of it or nothing."""
        with self.transaction() as db:
            self._move_attempt(db, attempt, "ENDED", {"ended": time.time()})
            db.execute("DELETE FROM leases WHERE run = ? AND step = ?", (step.run, step.name))
            return self._move(db, step, state, columns)

    def _move_attempt(
        self, db: Any, attempt: AttemptRow, state: str, columns: Mapping[str, Any]
    ) -> AttemptRow:
        key, where = (attempt.run, attempt.step, attempt.n), "run = ? AND step = ? AND n = ?"
        before = db.execute(f"SELECT state FROM attempts WHERE {where}", key).fetchone()[0]
        if before != state and not attempt_may(before, state):
            raise RunnerError(f"attempt {attempt.key} cannot go from {before} to {state}")
        self._set(db, "attempts", {"state": state, **columns}, where, key)
        return attempt_of(db.execute(f"SELECT * FROM attempts WHERE {where}", key).fetchone())

    def leases(self) -> dict[str, tuple[int, str]]:
        """Every leased resource (`port:8000`, `npu:3`) and the run and step that hold it."""
        return {r["resource"]: (r["run"], r["step"]) for r in self.rows("SELECT * FROM leases")}

    def lease(self, run: int, step: str, resources: Sequence[str]) -> bool:
        """Take all of these in place of what the step holds, or none when another has one of them."""
        with self.transaction() as db:
            db.execute("DELETE FROM leases WHERE run = ? AND step = ?", (run, step))
            marks = ",".join("?" * len(resources))
            if db.execute(f"SELECT 1 FROM leases WHERE resource IN ({marks}) LIMIT 1", resources).fetchone():
                return False
            token = db.execute("UPDATE tokens SET next = next + 1 RETURNING next").fetchone()[0]
            db.executemany(
                "INSERT INTO leases VALUES (?, ?, ?, ?)", [(r, token, run, step) for r in resources]
            )
        return True

    def _set(self, db: Any, table: str, columns: Mapping[str, Any], where: str, key: Sequence[Any]) -> None:
        names = ", ".join(f"{c} = ?" for c in columns)
        db.execute(f"UPDATE {table} SET {names} WHERE {where}", (*columns.values(), *key))
