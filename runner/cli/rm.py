"""`runner rm`: remove runs, with all that they left on the disk."""

from __future__ import annotations

import click

from runner.cli import complete, options


@click.command("rm")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=complete.runs)
@options.as_json
def command(runs: tuple[str, ...], as_json: bool) -> None:
    """Remove each RUN (a number, or a name: the newest of that name) that has ended, with its folder."""
    from runner.cli.home import open_store
    from runner.errors import UsageError
    from runner.store.remove import InUse, remove_run, why_not
    from runner.store.usage import size_text

    with open_store() as store:
        chosen = list({run.id: run for run in map(store.find, runs)}.values())
        used = InUse(store)
        if refused := [why for run in chosen if (why := why_not(store, run, used))]:
            raise UsageError("; ".join(refused))
        freed = {run.id: remove_run(store, run, used) for run in chosen}
    if as_json:
        options.print_json("removed/1", {"runs": list(freed), "bytes": sum(freed.values())})
        return
    names = ", ".join(f"{run.id} {run.name}" for run in chosen)
    click.echo(f"removed {names}; freed {size_text(sum(freed.values()))}")
