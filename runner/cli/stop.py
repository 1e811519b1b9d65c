"""`runner stop`: end a run; what trains saves a checkpoint first."""

from __future__ import annotations

import click


@click.command("stop")
@click.argument("run", required=False)
@click.option("--no-wait", is_flag=True, help="Only ask for it.")
def command(run: str | None, no_wait: bool) -> None:
    """Stop RUN (a number or a name; the newest run without one) and wait until nothing of it is left."""
    from runner.cli.follow import wait_run
    from runner.cli.home import open_store, revive

    with open_store() as store:
        found = store.find(run)
        if found.ended:
            click.echo(f"run {found.id} has ended already: {found.state}")
            return
        store.ask_stop(found.id)
        revive(store)
        if no_wait:
            click.echo(f"run {found.id} is being stopped")
            return
        wait_run(store, found.id, lambda: bool(store.run(found.id).ended))
        click.echo(f"run {found.id} {store.run(found.id).state}")
