"""How a run ended, as an exit code and as the last line on stderr that says whose code it is."""

from __future__ import annotations

import json

import click

from runner.core.state import exit_code
from runner.store.db import Step, Store


def outcome(store: Store, run: int) -> int:
    """The exit code of the first step that did not succeed, or 0; said on stderr."""
    state = store.run(run)
    steps = store.steps(run)
    first = next((s for s in steps if s.state in ("FAILED", "LOST", "CANCELLED")), None)
    if first is not None:
        code = exit_code(first.state, first.reason, first.code, first.signal)
        said = f" ({first.message})" if first.message else ""
        whose = f"step '{first.name}' ended with {_reason(first)}{said}"
        click.echo(f"run {run} {state.state}: {whose}; exit code {code}", err=True)
        return code
    if state.ended:
        click.echo(f"run {run} {state.state}", err=True)
        return 0
    ready = ", ".join(f"{s.name} at {s.outputs.get('endpoint')}" for s in steps if s.ended is None)
    click.echo(f"run {run} is READY: {ready}; `runner stop {run}` ends it", err=True)
    return 0


def is_over(store: Store, run: int) -> bool:
    """True when the run has ended, or only READY services that stay until they are stopped are left."""
    if store.run(run).ended:
        return True
    left = [s for s in store.steps(run) if s.ended is None]
    if not left or not all(_is_ready(store, s) for s in left):
        return False
    plan = json.loads(store.folder(run).plan.read_text(encoding="utf-8"))
    used = {need for step in plan["steps"] for need in step["needs"]}
    kept = {step["name"] for step in plan["steps"] if step["keep"]}
    return all(s.name in kept or s.name not in used for s in left)


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
