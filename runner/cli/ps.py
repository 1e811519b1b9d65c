"""`runner ps`: which runs there are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from runner.cli import options
from runner.cli.table import print_table

if TYPE_CHECKING:
    from runner.store.db import Run, Step, Store


@click.command("ps")
@click.option("-a", "--all", "everything", is_flag=True, help="Also runs that have ended.")
@options.group
@click.option("-w", "--wide", is_flag=True, help="Also group, priority, tries and disk use.")
@click.option(
    "-n",
    "limit",
    type=click.IntRange(min=1),
    default=50,
    help="At most so many, the newest first.",
    show_default=True,
)
@options.as_json
def command(everything: bool, group: str | None, wide: bool, limit: int, as_json: bool) -> None:
    """List the open runs, newest first; with --group all of a group."""
    from runner.cli.home import open_store

    with open_store() as store:
        runs = store.group(group)[::-1][:limit] if group else store.runs(ended=everything, limit=limit)
        rows = [(r, store.steps(r.id)) for r in runs]
        more = [_more(store, r) for r in runs] if wide else [()] * len(runs)
    if as_json:
        options.print_json(
            "runs/2", {"runs": [{**asdict(r), "steps": [asdict(s) for s in steps]} for r, steps in rows]}
        )
        return
    if not rows:
        click.echo("no runs" if everything else "no open runs; `runner ps --all` lists those that have ended")
        return
    now = time.time()
    cells = [
        (str(r.id), r.name, r.state, age(now - r.created), *extra, _now(r, steps))
        for (r, steps), extra in zip(rows, more, strict=True)
    ]
    wider = ("GROUP", "PRIORITY", "TRIES", "DISK") if wide else ()
    print_table(("RUN", "NAME", "STATE", "AGE", *wider, "NOW"), cells)


def _more(store: Store, run: Run) -> tuple[str, ...]:
    from runner.core.sizes import size_text
    from runner.store.usage import disk_use

    size = run.bytes if run.sealed and run.bytes is not None else disk_use(store.folder(run.id).path)
    return run.grp or "", str(run.priority), str(len(store.attempts(run.id))), size_text(size)


def _now(run: Run, steps: Sequence[Step]) -> str:
    """What the run does, or what it waits for."""
    if run.state == "HELD":
        return f"held until `runner release {run.id}`"
    open_states = ("ACTIVE", "QUEUED", "BACKOFF", "WAITING")
    return next((f"{s.name}: {s.why or s.state}" for s in steps if s.state in open_states), "")


def age(seconds: float) -> str:
    """A duration in the largest unit that fits."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
