"""`runner stop`: end a run; what trains saves a checkpoint first."""

from __future__ import annotations

from functools import partial

import click

from runner.cli import complete, options


@click.command("stop")
@click.argument("runs", nargs=-1, metavar="RUN...", shell_complete=complete.runs)
@options.group
@click.option("--no-wait", is_flag=True, help="Only ask for it.")
def command(runs: tuple[str, ...], group: str | None, no_wait: bool) -> None:
    """Stop RUNs (numbers or names; the newest run without one) and wait until nothing of them is left."""
    from runner.cli.chosen import chosen_runs
    from runner.cli.follow import wait_run
    from runner.cli.home import attended, open_store, revive

    with open_store() as store:
        chosen = chosen_runs(store, runs, group)
        for run in (r for r in chosen if r.ended is None):
            store.ask_stop(run.id)
        revive(store)
        for run in chosen:
            if run.ended is not None:
                click.echo(f"run {run.id} has ended already: {run.state}")
                continue
            if not no_wait:
                wait_run(store, run.id, attended(store, partial(store.has_ended, run.id)))
            click.echo(f"run {run.id} {'is being stopped' if no_wait else store.run(run.id).state}")
