"""How a run ended, as an exit code and as the last line on stderr that says whose code it is."""

from __future__ import annotations

import click

from runner.core.state import exit_code
from runner.store.db import Step, Store


def outcome(store: Store, run: int) -> int:
    """The run's exit code, said on stderr."""
    state = store.run(run)
    steps = store.steps(run)
    if not state.ended:
        ready = [s.name for s in steps if s.kind and _is_ready(store, s)]
        click.echo(f"run {run} is READY: {', '.join(ready)}; `runner stop {run}` ends it", err=True)
        return 0
    first = next((s for s in steps if s.state in ("FAILED", "LOST", "CANCELLED")), None)
    if first is None:
        click.echo(f"run {run} SUCCEEDED", err=True)
        return 0
    code = exit_code(first.state, first.reason, first.code, first.signal)
    said = f" ({first.message})" if first.message else ""
    click.echo(
        f"run {run} {state.state}: step '{first.name}' ended with {_reason(first)}{said}; exit code {code}",
        err=True,
    )
    return code


def is_over(store: Store, run: int) -> bool:
    """True when the run has ended, or only services are left and all of them are READY."""
    if store.run(run).ended:
        return True
    steps = [s for s in store.steps(run) if s.ended is None]
    return bool(steps) and all(_is_ready(store, s) for s in steps)


def _is_ready(store: Store, step: Step) -> bool:
    if step.state != "ACTIVE":
        return False
    attempts = store.attempts(step.run, step.name)
    return bool(attempts) and attempts[-1].state == "READY"


def _reason(step: Step) -> str:
    if step.reason == "signal":
        return f"signal {step.signal}"
    if step.reason == "exit_code":
        return f"exit code {step.code}"
    return step.reason or step.state
