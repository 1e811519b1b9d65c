"""`runner recover`: the index anew from the run folders."""

from __future__ import annotations

import click


@click.command("recover")
def command() -> None:
    """Make the index of runs anew where it is lost or broken, and go on with what had not ended.

    A broken index is set aside. Runs that have a folder and are not in the index are entered.
    """
    from runner.agent import end_agent
    from runner.cli.home import revive
    from runner.store.db import Store
    from runner.store.folders import default_home
    from runner.store.rebuild import is_broken, rebuild, set_aside

    home = default_home()
    if why := is_broken(home):
        end_agent(home)
        click.echo(f"the index is broken ({why}); it is now {set_aside(home).name}", err=True)
    elif not (home / "state.db").exists():
        end_agent(home)  # one that is left writes into a file that nobody sees any more
    store = Store(home)
    try:
        made = rebuild(store)
        for path in made.unreadable:
            click.echo(f"{path} holds no whole run; it stays as it is", err=True)
        runs = ", ".join(map(str, made.runs))
        click.echo(f"entered {len(made.runs)} run(s): {runs}" if runs else "every run is in the index")
        if store.has_open():
            revive(store)
    finally:
        store.close()
