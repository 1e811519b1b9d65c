"""Ctrl-C on a followed run: the first leaves it going, a second one soon after stops it."""

from __future__ import annotations

import time

import click

from runner.cli.follow import wait_run
from runner.cli.home import attended, revive
from runner.store.db import Store

_AGAIN_S = 3.0
STOPPED = 130


def detached_by_ctrl_c(store: Store, run: int) -> int | None:
    """Say how to come back, and give a second Ctrl-C its time; 130 when it came and the run is stopped."""
    try:
        click.echo(
            f"\nrun {run} goes on; `runner logs -f {run}` follows it again, `runner stop {run}` ends it,"
            f" and so does Ctrl-C within {_AGAIN_S:.0f} s",
            err=True,
        )
        time.sleep(_AGAIN_S)
        return None
    except KeyboardInterrupt:
        click.echo(f"\nstopping run {run}", err=True)
    store.ask_stop(run)
    revive(store)
    wait_run(store, run, attended(store, lambda: store.has_ended(run)))
    click.echo(f"run {run} {store.run(run).state}, stopped by you; exit code {STOPPED}", err=True)
    return STOPPED
