"""`runner ps`: which runs there are."""

from __future__ import annotations

import time
from dataclasses import asdict

import click

from runner.cli import options


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
    click.echo(f"{'RUN':>5}  {'NAME':<28} {'STATE':<10} {'AGE':>6}  NOW")
    for run, steps in rows:
        now = next(
            (f"{s.name}: {s.why or s.state}" for s in steps if s.state in ("ACTIVE", "QUEUED", "BACKOFF")), ""
        )
        click.echo(f"{run.id:>5}  {run.name:<28} {run.state:<10} {age(time.time() - run.created):>6}  {now}")


def age(seconds: float) -> str:
    """A duration in the largest unit that fits."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"
