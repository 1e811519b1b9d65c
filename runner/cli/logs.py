"""`runner logs`: what the steps print."""

from __future__ import annotations

import click


@click.command("logs")
@click.argument("run", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--step", metavar="NAME", help="Only this step.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
def command(run: str | None, follow: bool, step: str | None, tail: int | None) -> None:
    """Print what the steps of RUN (the newest run without one) print."""
    from collections import deque

    from runner.cli.follow import Follower
    from runner.cli.home import open_store
    from runner.core.wording import did_you_mean
    from runner.errors import UsageError

    with open_store() as store:
        found = store.find(run)
        names = [s.name for s in store.steps(found.id)]
        if step is not None and step not in names:
            raise UsageError(
                f"run {found.id} has no step '{step}'{did_you_mean(step, names)}",
                hint="steps: " + ", ".join(names),
            )
        kept: deque[str] = deque(maxlen=tail)
        live = False

        def write(line: str) -> None:
            if live or tail is None:
                click.echo(line)
            else:
                kept.append(line)

        follower = Follower(store, found.id, write, step)
        follower.print_new()
        for line in kept:
            click.echo(line)
        live = True
        if not follow:
            return
        try:
            follower.follow(lambda: bool(store.run(found.id).ended))
        except KeyboardInterrupt:
            click.echo(f"\nrun {found.id} goes on", err=True)
