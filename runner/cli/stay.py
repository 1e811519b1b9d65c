"""Stay with runs: follow one, or wait for several, and leave them by Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from runner.cli.follow import Follower, wait_run
from runner.cli.home import attended, revive
from runner.cli.outcome import is_over, last_words, outcome
from runner.cli.screen import Screen
from runner.store.db import Store

_AGAIN_S = 3.0
STOPPED = 130


def stay(
    store: Store, runs: Sequence[int], how: str, *, quiet: bool = False, junit: Path | None = None
) -> int:
    """Follow one run, wait for all of them in order, or leave; the exit code is the first that is not 0.

    Ctrl-C leaves them running; who waits for a code gets 130 then.
    """
    if how == "detach":
        return 0
    try:
        codes = [_until_over(store, run, how if len(runs) == 1 else "wait", quiet=quiet) for run in runs]
        code = next((c for c in codes if c), 0)
    except KeyboardInterrupt:
        if all(store.has_ended(run) for run in runs):  # it came too late
            code = next((c for run in runs if (c := outcome(store, run))), 0)
        else:
            code = left_by_ctrl_c(store, runs) or (0 if how == "follow" else STOPPED)
    if junit:
        from runner.cli.junit import write_junit

        write_junit(store, runs, junit)
    return code


def _until_over(store: Store, run: int, how: str, *, quiet: bool) -> int:
    over = attended(store, lambda: is_over(store, run))
    if store.run(run).state == "HELD":
        click.echo(f"run {run} is held until `runner release {run}`", err=True)
    if how == "follow":
        Follower(store, run, Screen(to_stderr=quiet)).follow(over)
    else:
        wait_run(store, run, over)
        last_words(store, run)
    return outcome(store, run)


def left_by_ctrl_c(store: Store, runs: Sequence[int]) -> int | None:
    """Say how to come back, and give a second Ctrl-C its time; 130 when it came and the runs are stopped."""
    left = [run for run in runs if not store.has_ended(run)]
    if not left:
        return None
    names = " ".join(map(str, left))
    try:
        click.echo(
            f"\nrun {names} goes on; `runner logs -f {left[-1]}` follows it again,"
            f" `runner stop {names}` ends it, and so does Ctrl-C within {_AGAIN_S:.0f} s",
            err=True,
        )
        time.sleep(_AGAIN_S)
        return None
    except KeyboardInterrupt:
        click.echo(f"\nstopping run {names}", err=True)
    for run in left:
        store.ask_stop(run)
    revive(store)
    for run in left:
        wait_run(store, run, attended(store, lambda run=run: store.has_ended(run)))  # type: ignore[misc]
        click.echo(f"run {run} {store.run(run).state}, stopped by you; exit code {STOPPED}", err=True)
    return STOPPED
