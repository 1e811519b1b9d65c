"""What the steps of one host may take together, and why a step has to wait for its share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runner.core.plan import Plan, PlannedStep

_GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """Runs at once, CPUs and bytes of memory for all steps that ask for some; None: no limit."""

    runs: int | None = None
    cpus: float | None = None
    memory: int | None = None


def shortage(limits: Limits, living: Iterable[PlannedStep], step: PlannedStep) -> str | None:
    """What the step lacks while these others live; None when it may start."""
    others = list(living)
    if step.cpus and limits.cpus is not None:
        free = limits.cpus - sum(s.cpus or 0 for s in others)
        if step.cpus > free:
            return f"needs {step.cpus:g} cpus, and {max(0.0, free):g} of {limits.cpus:g} are free"
    if step.memory and limits.memory is not None:
        left = limits.memory - sum(s.memory or 0 for s in others)
        if step.memory > left:
            return (
                f"needs {step.memory / _GIB:.1f} GiB of memory,"
                f" and {max(0, left) / _GIB:.1f} of {limits.memory / _GIB:.1f} are free"
            )
    return None


def never_fits(limits: Limits, plan: Plan) -> str | None:
    """Why a plan can never run within these limits; None when it can."""
    for step in plan.steps:
        if lacks := shortage(limits, (), step):
            return f"step '{step.name}' {lacks}"
    return None
