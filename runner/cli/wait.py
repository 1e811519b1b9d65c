"""`runner wait`: until the end, or READY."""

from __future__ import annotations

import click


@click.command("wait")
@click.argument("run", required=False)
def command(run: str | None) -> int:
    """Wait for RUN (a number or a name; the newest run without one) and return its exit code."""
    from runner.cli.home import open_store
    from runner.cli.submit import stay

    with open_store() as store:
        return stay(store, store.find(run).id, "wait")
