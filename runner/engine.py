"""The story of a run on one page: submit, tick, stop, collect."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runner.backends.base import Backend
from runner.core.plan import Plan, PlannedStep
from runner.core.state import RETRIED, STEP_ENDS, STOPPED_BY
from runner.errors import RunnerError, UnreachableError
from runner.files import read_json, write_atomic
from runner.launch import attempt_folder, attempt_key, launch, lease
from runner.store.collect import collect_outputs
from runner.store.db import AttemptRow, Run, Step, Store
from runner.store.folders import snapshot
from runner.store.memory import held_runs, hold, let_go

Ended = Callable[[Run], None]


def submit(
    store: Store, backend: Backend, plan: Plan, spec_text: bytes, source: Path, *, copy: bool = True
) -> int:
    """Write the run down, with a copy of the job's folder; nothing starts yet."""
    run = store.add_run(plan, str(source))
    folder = store.folder(run)
    try:
        folder.path.mkdir(parents=True)
        write_atomic(folder.spec, spec_text.decode("utf-8", "replace"))
        if copy:
            linked = snapshot(source.parent, folder.snapshot)
            origin = {"source": str(source.parent), "linked": linked}
            write_atomic(folder.path / "snapshot.json", json.dumps(origin) + "\n")
        hold(store.home, run, plan, os.environ, backend.inherited(os.environ))
        write_atomic(folder.plan, plan.model_dump_json(indent=1) + "\n")
        Story(store, run).tell(event="submitted")
        store.queue(run)
    except (RunnerError, OSError) as e:
        let_go(store.home, run)
        shutil.rmtree(folder.path, ignore_errors=True)
        with contextlib.suppress(UnreachableError):  # on a full disk the NEW row stays, which nobody looks at
            store.drop_run(run)
        if isinstance(e, RunnerError):
            raise
        message = f"cannot write {folder.path}: {e.strerror}"
        raise UnreachableError(message, hint="free disk space or set RUNNER_HOME") from e
    return run


class Story:
    """One line for each thing that happened in a run; followers wake up on it."""

    def __init__(self, store: Store, run: int) -> None:
        self._path = store.folder(run).events

    def tell(self, **event: object) -> None:
        """Add a line; on a full disk it is missing, which harms nobody but who follows."""
        line = json.dumps({"time": round(time.time(), 3), **event}, ensure_ascii=False) + "\n"
        with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as f:
            f.write(line)


class Engine:
    """Drives all open runs of a home; whoever holds the agent's lock has one."""

    def __init__(self, store: Store, backend: Backend, ended: Ended) -> None:
        self.store = store
        self.backend = backend
        self._ended = ended
        self._asked: set[str] = set()  # attempts that this process has asked to stop
        self._plans: dict[int, Plan] = {}

    def tidy(self) -> None:
        """Forget what an agent that was killed still held of runs that have ended."""
        for run in held_runs(self.store.home):
            if self.store.has_ended(run):
                let_go(self.store.home, run)

    def tick(self) -> bool:
        """Take every open run as far as it goes now; False when no run is open."""
        for run in self.store.open_runs():
            self._advance(run)
        return bool(self.store.open_runs())

    def watched(self) -> list[Path]:
        """The folders of the attempts that live."""
        attempts = [a for r in self.store.open_runs() for a in self.store.attempts(r.id)]
        return [attempt_folder(self.store, a) for a in attempts if a.state != "ENDED"]

    def next_due(self) -> float | None:
        """When time itself moves something: a retry, or the end of a run's time."""
        due = []
        for run in self.store.open_runs():
            steps = self.store.steps(run.id)
            due += [s.retry_at for s in steps if s.retry_at and s.state == "BACKOFF"]
            deadline = self._deadline(run, steps)
            due += [deadline] if deadline and time.time() < deadline else []
        return min(due, default=None)

    def waiting_for_others(self) -> bool:
        """Whether a step waits for a port or device that nobody tells us about when it comes free."""
        return any(s.state == "QUEUED" for r in self.store.open_runs() for s in self.store.steps(r.id))

    def _advance(self, run: Run) -> None:
        try:
            plan = self._plan(run)
        except (OSError, ValueError) as e:
            for step in self.store.steps(run.id):
                if step.state not in STEP_ENDS:
                    self._end(step, "FAILED", reason="preflight", message=f"plan.json is unreadable: {e}")
            return
        moved = True
        while moved:
            moved = False
            for step in self.store.steps(run.id):
                if step.state not in STEP_ENDS:
                    moved |= self._step(run, plan, step)
        after = self.store.run(run.id)
        if after.ended:
            let_go(self.store.home, run.id)
            Story(self.store, run.id).tell(event="ended", state=after.state)
            self._ended(after)

    def _step(self, run: Run, plan: Plan, step: Step) -> bool:
        """Move one open step; True when it moved."""
        planned = plan.step(step.name)
        halt = "user" if run.stop else "timeout" if self._overdue(run) else None
        if step.state == "QUEUED" and self._open_attempt(step):
            return self._move(step, "ACTIVE", {"why": None})  # an agent died while it started this one
        match step.state:
            case "ACTIVE":
                return self._active(plan, step, planned, halt)
            case _ if halt:
                return self._end(step, "CANCELLED", reason=halt)
            case "BACKOFF":
                return (step.retry_at or 0) <= time.time() and self._move(step, "QUEUED", {})
            case "WAITING":
                return self._waiting(plan, step, planned)
            case "QUEUED":
                return self._start(plan, step, planned)
        return False

    def _waiting(self, plan: Plan, step: Step, planned: PlannedStep) -> bool:
        states = {s.name: s for s in self.store.steps(step.run)}
        if failed := _failed(states, planned):
            return self._end(step, "SKIPPED", reason="dependency", message=f"step '{failed}' did not succeed")
        waits = [n for n in planned.needs if not self._met(states[n], plan.step(n))]
        if not waits:
            return self._move(step, "QUEUED", {})
        why = "; ".join(f"step '{n}' is not {'READY' if plan.step(n).service else 'done'}" for n in waits)
        if why != step.why:
            self.store.move_step(step, "WAITING", why=why)
        return False

    def _met(self, step: Step, planned: PlannedStep) -> bool:
        if step.state == "SUCCEEDED":
            return True
        attempt = self._open_attempt(step) if planned.service and step.state == "ACTIVE" else None
        return attempt is not None and attempt.state == "READY"

    def _start(self, plan: Plan, step: Step, planned: PlannedStep) -> bool:
        placed = lease(self.store, self.backend, step, planned)
        if isinstance(placed, str):
            if placed != step.why:
                self.store.move_step(step, "QUEUED", why=placed)
            return False
        attempt = self.store.add_attempt(step, placed)
        started = step.started or attempt.started
        self._move(step, "ACTIVE", {"started": started, "why": None})
        self._launch(plan, attempt)
        return True

    def _launch(self, plan: Plan, attempt: AttemptRow) -> None:
        try:
            launch(self.store, self.backend, plan, attempt)
        except (RunnerError, OSError) as e:
            message = e.message if isinstance(e, RunnerError) else f"cannot be started: {e}"
            end = {"reason": "preflight", "code": None, "signal": None, "message": message}
            write_atomic(attempt_folder(self.store, attempt) / "exit.json", json.dumps(end) + "\n")
            return
        self.store.move_attempt(attempt, "RUNNING")

    def _active(self, plan: Plan, step: Step, planned: PlannedStep, halt: str | None) -> bool:
        attempt = self.store.attempts(step.run, step.name)[-1]
        here = attempt_folder(self.store, attempt)
        ended = read_json(here / "exit.json")
        if ended is None and not self.backend.alive(here):
            if attempt.state == "STARTING" and not (here / "started.json").exists():
                self._launch(plan, attempt)
                return True
            ended = read_json(here / "exit.json") or self._lost(here, attempt)
        if ended is not None:
            return self._collect(step, planned, attempt, ended)
        if planned.service and attempt.state in ("STARTING", "RUNNING") and read_json(here / "ready.json"):
            self.store.move_attempt(attempt, "READY")
            outputs = collect_outputs(planned, self.store.folder(step.run), attempt.placed["ports"])
            return self._move(step, "ACTIVE", {"outputs": json.dumps(outputs)}, told_as="READY")
        intent = attempt.intent or halt or self._over(plan, step, planned)
        if intent and attempt.key not in self._asked:
            if attempt.intent is None:
                self.store.move_attempt(attempt, "STOPPING", intent=intent)
                Story(self.store, step.run).tell(event="stopping", step=step.name, why=intent)
            if not (here / "stopping.json").exists():  # a second TERM would end the grace
                self.backend.stop(here)
            self._asked.add(attempt.key)
        return False

    def _over(self, plan: Plan, step: Step, planned: PlannedStep) -> str | None:
        """Why a living step is no longer wanted: its consumers have ended, or a service it talks to has."""
        states = {s.name: s for s in self.store.steps(step.run)}
        if _failed(states, planned):
            return "dependency"
        consumers = plan.consumers(step.name) if planned.service and not planned.keep else ()
        return "done" if consumers and all(states[c].state in STEP_ENDS for c in consumers) else None

    def _lost(self, here: Path, attempt: AttemptRow) -> dict[str, object]:
        left = self.backend.end_leftovers(here, attempt_key(self.store, attempt))
        also = f"; {len(left)} of its processes were still there and were ended" if left else ""
        message = f"its supervisor is gone without a record{also}"
        return {"reason": "host_lost", "code": None, "signal": None, "message": message}

    def _collect(
        self, step: Step, planned: PlannedStep, attempt: AttemptRow, record: Mapping[str, object]
    ) -> bool:
        end = {k: record.get(k) for k in ("reason", "code", "signal", "message")}
        attempt = self.store.move_attempt(attempt, "COLLECTING", **end)
        outputs = dict(step.outputs)
        if not planned.service:
            outputs = collect_outputs(planned, self.store.folder(step.run), {})
        self.store.move_attempt(attempt, "ENDED", ended=time.time())
        self.store.release(step.run, step.name)
        end["outputs"] = json.dumps(outputs, ensure_ascii=False)
        if attempt.intent in STOPPED_BY:
            end["reason"] = attempt.intent
            end["message"] = STOPPED_BY[attempt.intent][1]
            return self._end(step, STOPPED_BY[attempt.intent][0], **end)
        done = end["reason"] == "exit_code" and end["code"] == 0
        if done and not planned.service:
            return self._end(step, "SUCCEEDED", **end)
        if attempt.intent == "done" and end["reason"] in ("user", "exit_code"):
            return self._end(step, "SUCCEEDED", **{**end, "reason": "done", "message": None})
        if done:
            end["message"] = "the service ended by itself"
        if attempt.n < planned.attempts and end["reason"] in RETRIED:
            again = time.time() + planned.backoff_s * 2 ** (attempt.n - 1)
            why = f"try {attempt.n + 1} of {planned.attempts} follows"
            return self._move(step, "BACKOFF", {**end, "retry_at": again, "why": why})
        return self._end(step, "LOST" if end["reason"] == "host_lost" else "FAILED", **end)

    def _end(self, step: Step, state: str, **columns: object) -> bool:
        return self._move(step, state, {**columns, "ended": time.time(), "why": None})

    def _move(self, step: Step, state: str, columns: Mapping[str, object], told_as: str = "") -> bool:
        self.store.move_step(step, state, **columns)
        if state != "QUEUED":
            tries = len(self.store.attempts(step.run, step.name))
            said = {k: columns.get(k) for k in ("reason", "code", "message", "why")}
            said = {k: v for k, v in {**said, "attempt": tries or None}.items() if v is not None}
            Story(self.store, step.run).tell(event="step", step=step.name, state=told_as or state, **said)
        return True

    def _open_attempt(self, step: Step) -> AttemptRow | None:
        attempts = self.store.attempts(step.run, step.name)
        return attempts[-1] if attempts and attempts[-1].state != "ENDED" else None

    def _deadline(self, run: Run, steps: Sequence[Step]) -> float | None:
        try:
            limit = self._plan(run).timeout_s
        except (OSError, ValueError):
            return None
        started = [s.started for s in steps if s.started]
        return min(started) + limit if limit and started else None

    def _overdue(self, run: Run) -> bool:
        deadline = self._deadline(run, self.store.steps(run.id))
        return deadline is not None and time.time() >= deadline

    def _plan(self, run: Run) -> Plan:
        if run.id not in self._plans:
            text = self.store.folder(run.id).plan.read_text(encoding="utf-8")
            self._plans[run.id] = Plan.model_validate_json(text)
        return self._plans[run.id]


def _failed(states: Mapping[str, Step], planned: PlannedStep) -> str | None:
    """The first needed step that ended otherwise than well."""
    ended = (n for n in planned.needs if states[n].state in STEP_ENDS)
    return next((n for n in ended if states[n].state != "SUCCEEDED"), None)
