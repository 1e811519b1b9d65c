"""The story of a run on one page: what the agent does with an open run, from its first step to its end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.backends.base import Backend
from runner.core.ending import End, after, record_end
from runner.core.limits import Limits
from runner.core.plan import Plan, PlannedStep
from runner.core.state import STEP_ENDS
from runner.errors import RunnerError, UnreachableError
from runner.files import read_json, write_atomic
from runner.launch import attempt_folder, attempt_key, launch, lease
from runner.store.collect import collect_outputs
from runner.store.db import AttemptRow, Run, Step, Store
from runner.store.memory import held_runs, let_go
from runner.store.metrics import keep_metrics
from runner.store.story import Story
from runner.store.thin import thin_log
from runner.submission import clear, read_plan
from runner.turns import Turns


@dataclass(frozen=True)
class Host:
    """What runs attempts here, what they may take together, and who hears that a run has ended."""

    backend: Backend
    limits: Limits
    ended: Callable[[Run], None]


class Engine:
    """Drives all open runs of a home; whoever holds the agent's lock has one."""

    def __init__(self, store: Store, host: Host) -> None:
        self.store = store
        self.backend = host.backend
        self._host = host
        self._asked: set[str] = set()  # attempts that this process has asked to stop
        self._plans: dict[int, Plan] = {}
        self._queued: set[int] = set()  # runs with a step that waits for its turn, a port or a device
        self._due: dict[int, float] = {}  # runs that time itself moves, and when
        self._turns = Turns(store, host.limits, self._plan)

    def tidy(self) -> None:
        """Forget what an agent that was killed still held of runs that have ended."""
        clear(self.store)
        for run in held_runs(self.store.home):
            self._let_go(run)

    def tick(self, touched: set[int] | None = None) -> bool:
        """Take all open runs, or these and those that wait, as far as they go; False when none is left."""
        self._turns.begin()
        left = False
        # those that have begun first: what they give back goes to the next in line
        for run in sorted(self.store.open_runs(), key=lambda r: r.state != "RUNNING"):
            if touched is None or run.id in touched or run.id in self._queued:
                left |= self._advance(run)
            else:
                left = True
        return left

    def watched(self) -> dict[Path, int]:
        """The folders of the attempts that live, each with its run."""
        return {attempt_folder(self.store, a): a.run for a in self.store.living()}

    def next_due(self) -> float | None:
        """When time itself moves something: a retry, or the end of a run's time."""
        return min(self._due.values(), default=None)

    def waiting_for_others(self) -> bool:
        """Whether a step waits for a port or device that nobody tells us about when it comes free."""
        return bool(self._queued)

    def _advance(self, run: Run) -> bool:
        """Take one run as far as it goes; False when it has ended or is held."""
        try:
            plan = self._plan(run.id)
        except UnreachableError as e:
            self._abandon(run, e.message)
            return False
        moved = True
        while moved:
            moved = False
            for step in self.store.steps(run.id):
                if step.state not in STEP_ENDS:
                    moved |= self._step(run, plan, step)
        self._look_ahead(run, plan)
        now = self.store.run(run.id)
        if now.ended:
            self._forget(now)
        return now.ended is None and now.state != "HELD"

    def _abandon(self, run: Run, message: str) -> None:
        for step in self.store.steps(run.id):
            if attempt := self._open_attempt(step):
                here = attempt_folder(self.store, attempt)
                self.backend.stop(here)
                self.backend.end_leftovers(here, attempt_key(self.store, attempt))
                attempt = self.store.move_attempt(attempt, "COLLECTING", reason="preflight", message=message)
                self.store.end_attempt(attempt, step, "FAILED", reason="preflight", message=message)
            elif step.state not in STEP_ENDS:
                self._end(step, "FAILED", reason="preflight", message=message)
        self._forget(self.store.run(run.id))

    def _forget(self, run: Run) -> None:
        self._plans.pop(run.id, None)
        self._queued.discard(run.id)
        self._due.pop(run.id, None)
        self._tell(run.id, event="ended", state=run.state)
        self._host.ended(run)
        self._let_go(run.id)

    def _let_go(self, run: int) -> None:
        with self.store.transaction():  # a retry holds anew in one of its own
            if self.store.has_ended(run):
                let_go(self.store.home, run)

    def _look_ahead(self, run: Run, plan: Plan) -> None:
        steps = self.store.steps(run.id)
        due = [s.retry_at for s in steps if s.retry_at and s.state == "BACKOFF"]
        deadline = _deadline(run, plan, steps)
        due += [deadline] if deadline and time.time() < deadline else []
        self._due.pop(run.id, None)
        if due:
            self._due[run.id] = min(due)
        queued = any(s.state == "QUEUED" for s in steps)
        (self._queued.add if queued else self._queued.discard)(run.id)

    def _step(self, run: Run, plan: Plan, step: Step) -> bool:
        """Move one open step; True when it moved."""
        planned = plan.step(step.name)
        deadline = _deadline(run, plan, self.store.steps(run.id))
        halt = "user" if run.stop else "timeout" if deadline and time.time() >= deadline else None
        if step.state == "QUEUED" and self._open_attempt(step):
            begun = step.started or self.store.attempts(step.run, step.name)[-1].started
            return self._move(step, "ACTIVE", {"started": begun, "why": None})  # an agent died meanwhile
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
                return self._start(run, plan, step, planned)
        return False

    def _waiting(self, plan: Plan, step: Step, planned: PlannedStep) -> bool:
        states = {s.name: s for s in self.store.steps(step.run)}
        if failed := _failed(states, planned):
            return self._end(step, "SKIPPED", reason="dependency", message=f"step '{failed}' did not succeed")
        waits = [n for n in planned.needs if not self._met(states[n], plan.step(n))]
        if not waits:
            return self._move(step, "QUEUED", {})
        why = "; ".join(f"step '{n}' is not {'READY' if plan.step(n).service else 'done'}" for n in waits)
        return self._wait(step, why)

    def _met(self, step: Step, planned: PlannedStep) -> bool:
        if step.state == "SUCCEEDED":
            return True
        attempt = self._open_attempt(step) if planned.service and step.state == "ACTIVE" else None
        return attempt is not None and attempt.state == "READY"

    def _start(self, run: Run, plan: Plan, step: Step, planned: PlannedStep) -> bool:
        why = self._turns.why_not(run, planned)
        placed = why or lease(self.store, self.backend, step, planned)
        if isinstance(placed, str):
            return self._wait(step, placed)
        attempt = self.store.add_attempt(step, placed)
        self._move(step, "ACTIVE", {"started": step.started or attempt.started, "why": None})
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
        begun = (here / "started.json").exists()  # before alive(): it may begin between the two looks
        if ended is None and not self.backend.alive(here):
            if attempt.state == "STARTING" and not begun:
                self._launch(plan, attempt)
                return True
            ended = read_json(here / "exit.json") or self._lost(here, attempt)
        if ended is not None:
            return self._collect(step, planned, attempt, ended)
        if attempt.state == "STARTING":
            attempt = self.store.move_attempt(attempt, "RUNNING")  # an agent died while it started this one
        if planned.service and attempt.state == "RUNNING" and read_json(here / "ready.json"):
            self.store.move_attempt(attempt, "READY")
            outputs = collect_outputs(planned, self.store.folder(step.run), attempt.placed["ports"])
            return self._move(step, "ACTIVE", {"outputs": json.dumps(outputs)}, told_as="READY")
        intent = attempt.intent or halt or self._over(plan, step, planned)
        if intent and begun and attempt.key not in self._asked:  # before that no TERM is understood
            if attempt.intent is None:
                self.store.move_attempt(attempt, "STOPPING", intent=intent)
                self._tell(step.run, event="stopping", step=step.name, why=intent)
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
        attempt = self.store.move_attempt(attempt, "COLLECTING", **record_end(record))
        folder = self.store.folder(step.run)
        outputs = dict(step.outputs) if planned.service else collect_outputs(planned, folder, {})
        keep_metrics(folder, planned, outputs)
        thin_log(attempt_folder(self.store, attempt) / "log.txt")
        end = End(
            reason=str(attempt.reason),
            code=attempt.code,
            intent=attempt.intent,
            tries=attempt.n - step.base,
            lived_s=time.time() - attempt.started,
            was_ready=planned.service and bool(step.outputs),
        )
        verdict = after(planned, end)
        again = verdict.state == "BACKOFF"
        columns = {
            "reason": verdict.reason,
            "code": attempt.code,
            "signal": attempt.signal,
            "message": None if verdict.silent else verdict.message or attempt.message,
            "outputs": json.dumps(outputs, ensure_ascii=False),
            "why": verdict.why,
            "retry_at": time.time() + verdict.wait_s if again else None,
            "ended": None if again else time.time(),
        }
        self.store.end_attempt(attempt, step, verdict.state, **columns)
        self._tell_step(step, verdict.state, columns)
        return True

    def _wait(self, step: Step, why: str) -> bool:
        if why != step.why:
            self.store.move_step(step, step.state, why=why)
        return False

    def _end(self, step: Step, state: str, **columns: object) -> bool:
        return self._move(step, state, {**columns, "ended": time.time(), "why": None})

    def _move(self, step: Step, state: str, columns: Mapping[str, object], told_as: str = "") -> bool:
        self.store.move_step(step, state, **columns)
        if state != "QUEUED":
            self._tell_step(step, told_as or state, columns)
        return True

    def _tell_step(self, step: Step, state: str, columns: Mapping[str, object]) -> None:
        tries = len(self.store.attempts(step.run, step.name))
        said = {k: columns.get(k) for k in ("reason", "code", "message", "why")}
        said = {k: v for k, v in {**said, "attempt": tries or None}.items() if v is not None}
        self._tell(step.run, event="step", step=step.name, state=state, **said)

    def _tell(self, run: int, **event: object) -> None:
        Story(self.store.folder(run).events).tell(**event)

    def _open_attempt(self, step: Step) -> AttemptRow | None:
        attempts = self.store.attempts(step.run, step.name)
        return attempts[-1] if attempts and attempts[-1].state != "ENDED" else None

    def _plan(self, run: int) -> Plan:
        if run not in self._plans:
            self._plans[run] = read_plan(self.store, run)
        return self._plans[run]


def _deadline(run: Run, plan: Plan, steps: Sequence[Step]) -> float | None:
    started = [s.started for s in steps if s.started and s.started >= (run.reopened or 0)]
    return min(started) + plan.timeout_s if plan.timeout_s and started else None


def _failed(states: Mapping[str, Step], planned: PlannedStep) -> str | None:
    """The first needed step that ended otherwise than well."""
    ended = (n for n in planned.needs if states[n].state in STEP_ENDS)
    return next((n for n in ended if states[n].state != "SUCCEEDED"), None)
