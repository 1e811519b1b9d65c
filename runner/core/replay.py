"""From the story of a run to its state: what the index would say had it not been lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from runner.core.state import STEP, STEP_ENDS


@dataclass(frozen=True)
class ToldStep:
    """The last that was told of a step."""

    state: str = "WAITING"
    reason: str | None = None
    message: str | None = None
    code: int | None = None
    ended: float | None = None
    intent: str | None = None  # of a stop that had begun
    attempt: int = 0  # the last one that was told of
    base: int = 0  # attempts before the last `retry`


@dataclass(frozen=True)
class Told:
    """What the story says of a run."""

    created: float | None = None
    ended: float | None = None
    submitted: Mapping[str, Any] = field(default_factory=dict)
    resume: bool = False
    reopened: float | None = None
    steps: Mapping[str, ToldStep] = field(default_factory=dict)


def replay(events: Iterable[Mapping[str, Any]], steps: Iterable[str]) -> Told:
    """Follow the events in order; one that makes no sense is passed over."""
    told = Told(steps={name: ToldStep() for name in steps})
    for event in events:
        told = _after(told, event)
    return told


def _after(told: Told, event: Mapping[str, Any]) -> Told:
    time = event["time"] if isinstance(event.get("time"), (int, float)) else None
    match event.get("event"):
        case "submitted":
            state = "HELD" if event.get("held") else "WAITING"
            steps = {n: replace(s, state=state) for n, s in told.steps.items()}
            return replace(told, created=time, submitted=event, steps=steps)
        case "released":
            steps = {
                n: replace(s, state="WAITING") if s.state == "HELD" else s for n, s in told.steps.items()
            }
            return replace(told, steps=steps)
        case "retried":
            again = set(event.get("steps") or [])
            steps = {
                n: ToldStep(base=s.attempt, attempt=s.attempt) if n in again else s
                for n, s in told.steps.items()
            }
            return replace(told, ended=None, reopened=time, resume=bool(event.get("resume")), steps=steps)
        case "stopping" if event.get("step") in told.steps:
            name = event["step"]
            return replace(
                told, steps={**told.steps, name: replace(told.steps[name], intent=event.get("why"))}
            )
        case "ended":
            return replace(told, ended=time)
        case "step" if event.get("step") in told.steps:
            return replace(
                told, steps={**told.steps, event["step"]: _step(told.steps[event["step"]], event, time)}
            )
    return told


def _step(before: ToldStep, event: Mapping[str, Any], time: float | None) -> ToldStep:
    state = "ACTIVE" if event.get("state") == "READY" else event.get("state")
    if not isinstance(state, str) or state not in STEP:
        return before
    attempt = event["attempt"] if isinstance(event.get("attempt"), int) else before.attempt
    intent = before.intent if attempt == before.attempt else None
    ended = time if state in STEP_ENDS else None
    said = {k: event.get(k) for k in ("reason", "message", "code")}
    return ToldStep(state=state, **said, ended=ended, intent=intent, attempt=attempt, base=before.base)
