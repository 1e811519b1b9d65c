"""Whose turn it is: what a step that could start still waits for, other than ports and devices."""

from __future__ import annotations

from collections.abc import Callable

from runner.core.limits import Limits, shortage
from runner.core.plan import Plan, PlannedStep
from runner.store.db import Run, Store
from runner.store.memory import lost_secrets


class Turns:
    """Keeps the limits of a host during one pass over its open runs, in the order in which they may start."""

    def __init__(self, store: Store, limits: Limits, plan_of: Callable[[int], Plan]) -> None:
        self._store = store
        self._limits = limits
        self._plan_of = plan_of
        self._short: int | None = None  # the first run that lacks cpus or memory: who asks for some waits too

    def begin(self) -> None:
        """Another pass begins."""
        self._short = None

    def why_not(self, run: Run, step: PlannedStep) -> str | None:
        """Why the step may not start yet; None when it may."""
        if lost := lost_secrets(self._store.home, run.id, step):
            names = ", ".join(lost)
            return f"lost {names} when the host restarted; export it and `runner release {run.id}`"
        if self._limits.runs is not None and run.state != "RUNNING":
            going = sum(r.state == "RUNNING" and r.id != run.id for r in self._store.open_runs())
            if going >= self._limits.runs:
                return f"{going} run(s) are going, and limits.runs of the site file is {self._limits.runs}"
        if not step.cpus and not step.memory:
            return None
        if self._short not in (None, run.id):
            return f"is behind run {self._short}, which waits for cpus or memory"
        living = [self._plan_of(a.run).step(a.step) for a in self._store.living()]
        why = shortage(self._limits, living, step)
        self._short = run.id if why else self._short
        return why
