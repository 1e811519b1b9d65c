"""`runner ps`: which runs there are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

import click

from runner.cli import options
from runner.cli.table import print_table
from runner.store.db import Step


@click.command("ps")
@click.option("-a", "--all", "everything", is_flag=True, help="Also runs that have ended.")
@click.option(
    "-n",
    "limit",
    type=click.IntRange(min=1),
    default=50,
    help="At most so many, the newest first.",
    show_default=True,
)
@options.as_json
def command(everything: bool, limit: int, as_json: bool) -> None:
    """List the open runs, newest first."""
    from runner.cli.home import open_store

    with open_store() as store:
        runs = store.runs(ended=everything, limit=limit)
        rows = [(r, store.steps(r.id)) for r in runs]
    if as_json:
        options.print_json(
            "runs/1", {"runs": [{**asdict(r), "steps": [asdict(s) for s in steps]} for r, steps in rows]}
        )
        return
    if not rows:
        click.echo("no runs" if everything else "no open runs; `runner ps --all` lists those that have ended")
        return
    now = time.time()
    cells = [(str(r.id), r.name, r.state, age(now - r.created), _now(steps)) for r, steps in rows]
    print_table(("RUN", "NAME", "STATE", "AGE", "NOW"), cells)


def _now(steps: Sequence[Step]) -> str:
    """What the run does, or what it waits for."""
    open_states = ("ACTIVE", "QUEUED", "BACKOFF", "WAITING")
    return next((f"{s.name}: {s.why or s.state}" for s in steps if s.state in open_states), "")


def age(seconds: float) -> str:
    """A duration in the largest unit that fits."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
