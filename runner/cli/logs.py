"""`runner logs`: what the steps print."""

from __future__ import annotations

import click

from runner.cli import complete


@click.command("logs")
@click.argument("run", required=False, shell_complete=complete.runs)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--step", metavar="NAME", shell_complete=complete.steps, help="Only this step.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
def command(run: str | None, follow: bool, step: str | None, tail: int | None) -> int:
    """Print what the steps of RUN (the newest run without one) print."""
    from runner.cli.follow import Follower
    from runner.cli.home import attended, open_store
    from runner.cli.screen import Screen
    from runner.cli.stay import left_by_ctrl_c
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
        follower = Follower(store, found.id, Screen(), step)
        if tail is not None:
            follower.skip_to_last(tail)
        if not follow:
            follower.print_new(unfinished=True)
            follower.close()
            return 0
        try:
            follower.follow(attended(store, lambda: store.has_ended(found.id)))
        except KeyboardInterrupt:
            return left_by_ctrl_c(store, [found.id]) or 0
        return 0
