"""What follows when an attempt has ended: success, the step's end, or another try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from runner.core.plan import PlannedStep
from runner.core.spec import RetriedReason
from runner.core.state import STOPPED_BY

LONGEST_BACKOFF_S = 600.0
RETRIED = get_args(RetriedReason)
STEADY_S = 600.0  # a service that has lived so long begins its backoff anew


@dataclass(frozen=True)
class End:
    """How the attempt ended (exit.json), and what the engine had wanted of it."""

    reason: str
    code: int | None
    intent: str | None
    tries: int  # of this step since it was submitted or opened again
    lived_s: float
    was_ready: bool = False


@dataclass(frozen=True)
class Verdict:
    """The step's next state, with what is said of it; `wait_s` before another try."""

    state: str
    reason: str
    why: str | None = None
    message: str | None = None  # in place of the record's own
    wait_s: float = 0.0
    silent: bool = False  # the record's own message says nothing here


def after(step: PlannedStep, end: End) -> Verdict:
    """Decide; the intent of a stop beats any exit code."""
    if end.intent in STOPPED_BY:
        state, message = STOPPED_BY[end.intent]
        return Verdict(state, end.intent, message=message, silent=message is None)
    good = end.reason == "exit_code" and end.code == 0
    if good and not step.service:
        return Verdict("SUCCEEDED", end.reason)
    if end.intent == "done" and end.reason in ("user", "exit_code"):
        return Verdict("SUCCEEDED", "done", silent=True)
    message = "the service ended by itself" if good else None
    if end.was_ready and (step.restart == "always" or (step.restart == "on-failure" and not good)):
        tries = 1 if end.lived_s >= STEADY_S else end.tries
        return Verdict("BACKOFF", end.reason, "the service is restarted", message, backoff_s(step, tries))
    if end.tries < step.attempts and end.reason in (RETRIED if step.retry_on is None else step.retry_on):
        why = f"try {end.tries + 1} of {step.attempts} follows"
        return Verdict("BACKOFF", end.reason, why, message, backoff_s(step, end.tries))
    return Verdict("LOST" if end.reason == "host_lost" else "FAILED", end.reason, message=message)


def backoff_s(step: PlannedStep, tries: int) -> float:
    """Seconds before the next try: doubled with each one, up to ten minutes."""
    return float(min(step.backoff_s * 2 ** min(tries - 1, 20), max(LONGEST_BACKOFF_S, step.backoff_s)))


def record_end(record: Mapping[str, object]) -> dict[str, object]:
    """The columns that an attempt's record gives."""
    return {k: record.get(k) for k in ("reason", "code", "signal", "message")}
