"""How a run ended, as an exit code and as the last line on stderr that says whose code it is."""

from __future__ import annotations

import json

import click

from runner.core.state import exit_code
from runner.store.db import Step, Store

_LAST_WORDS = 20
_LAST_BYTES = 16 << 10


def outcome(store: Store, run: int) -> int:
    """The exit code of the first step that did not succeed, or 0; said on stderr."""
    from runner.cli.loggroups import one_line

    state = store.run(run)
    steps = store.steps(run)
    first = next((s for s in steps if s.state in ("FAILED", "LOST", "CANCELLED")), None)
    if first is not None:
        code = exit_code(first.state, first.reason, first.code, first.signal)
        said = f" ({one_line(first.message)})" if first.message else ""
        whose = f"step '{first.name}' ended with {_reason(first)}{said}"
        click.echo(f"run {run} {state.state}: {whose}; exit code {code}", err=True)
        return code
    if state.ended:
        click.echo(f"run {run} {state.state}", err=True)
        return 0
    ready = ", ".join(f"{s.name} at {s.outputs.get('endpoint')}" for s in steps if s.ended is None)
    click.echo(f"run {run} is READY: {ready}; `runner stop {run}` ends it", err=True)
    return 0


def last_words(store: Store, run: int) -> None:
    """The end of the log of the first step that failed, on stderr."""
    from runner.cli.loggroups import quoted
    from runner.cli.tail import last_lines

    first = next((s for s in store.steps(run) if s.state in ("FAILED", "LOST")), None)
    attempts = store.attempts(run, first.name) if first else []
    if first is None or not attempts:
        return
    path = store.folder(run).attempt(first.name, attempts[-1].n) / "log.txt"
    lines = last_lines(path, _LAST_WORDS, _LAST_BYTES)
    if not lines:
        return
    click.echo(f"the last lines of step '{first.name}' ({path}):", err=True)
    for line in quoted([f"  | {line}" for line in lines]):
        click.echo(line, err=True)


def is_over(store: Store, run: int) -> bool:
    """True when the run has ended, or only READY services that stay until they are stopped are left."""
    if store.run(run).ended:
        return True
    left = [s for s in store.steps(run) if s.ended is None]
    if not left or not all(is_ready(store, s) for s in left):
        return False
    plan = json.loads(store.folder(run).plan.read_text(encoding="utf-8"))
    used = {need for step in plan["steps"] for need in step["needs"]}
    kept = {step["name"] for step in plan["steps"] if step["keep"]}
    return all(s.name in kept or s.name not in used for s in left)


def is_ready(store: Store, step: Step) -> bool:
    """Whether a service is READY now."""
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
