"""`runner retry`: another try for what did not succeed in an ended run."""

from __future__ import annotations

import click

from runner.cli import complete, options


@click.command("retry")
@click.argument("run", required=False, shell_complete=complete.runs)
@click.option("--resume", is_flag=True, help="Training goes on from its newest complete checkpoint.")
@options.stay
def command(run: str | None, resume: bool, how: str | None) -> int:
    """Try again what did not succeed in RUN (a number or a name; the newest run without one).

    Steps that succeeded are kept, earlier attempts and their logs too. Secrets are taken from the environment
    anew.
    """
    from runner.cli.home import open_store, revive, set_up
    from runner.cli.stay import stay
    from runner.submission import retry

    with open_store() as store:
        found = store.find(run)
        steps = retry(store, set_up(store.home).backend, found, resume=resume)
        revive(store)
        click.echo(f"run {found.id}: {', '.join(steps)} again")
        return stay(store, [found.id], options.chosen_stay(how))
