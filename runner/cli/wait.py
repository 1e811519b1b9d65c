"""`runner wait`: until the end, or READY."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import complete, options


@click.command("wait")
@click.argument("runs", nargs=-1, metavar="RUN...", shell_complete=complete.runs)
@options.group
@options.junit
def command(runs: tuple[str, ...], group: str | None, junit: Path | None) -> int:
    """Wait for RUNs (numbers or names; the newest without one); the exit code is the first that is not 0."""
    from runner.cli.chosen import chosen_runs
    from runner.cli.home import open_store
    from runner.cli.stay import stay

    with open_store() as store:
        return stay(store, [r.id for r in chosen_runs(store, runs, group)], "wait", junit=junit)
