"""`runner release`: let a held run go."""

from __future__ import annotations

import click

from runner.cli import complete, options


@click.command("release")
@click.argument("runs", nargs=-1, metavar="RUN...", shell_complete=complete.runs)
@options.group
def command(runs: tuple[str, ...], group: str | None) -> None:
    """Let RUNs go that `submit --hold` holds, and give those that lost their secrets the ones set now."""
    from runner.cli.chosen import chosen_runs
    from runner.cli.home import open_store, revive, set_up
    from runner.submission import release

    with open_store() as store:
        backend = set_up(store.home).backend
        for run in chosen_runs(store, runs, group):
            if run.ended is not None and group:
                continue
            done = release(store, backend, run)
            click.echo(f"run {run.id} {'is released' if done else 'was not held'}")
        revive(store)
