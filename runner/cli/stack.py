"""`runner stack`: the pinned sets of packages on this machine."""

from __future__ import annotations

import click

from runner.cli import complete, options
from runner.cli.table import print_table


@click.group("stack")
def command() -> None:
    """List, install and adopt stacks of pinned packages."""


@command.command("list")
@options.as_json
def list_stacks(as_json: bool) -> None:
    """List all stacks and where they are installed."""
    from runner.backends.venv import find_stack
    from runner.data.stacks import load_stack, stack_names
    from runner.store.folders import default_home

    home = default_home()
    rows = [(load_stack(name), find_stack(home, name)) for name in stack_names()]
    if as_json:
        options.print_json(
            "stacks/2",
            {"stacks": [{**s.model_dump(), "installed": str(at) if at else None} for s, at in rows]},
        )
        return
    cells = [(s.stack, "/".join(s.generations), str(at or "not on this host"), s.title) for s, at in rows]
    print_table(("STACK", "FOR", "WHERE", "WHAT"), cells)


@command.command("install")
@click.argument("name", shell_complete=complete.stacks)
def install(name: str) -> None:
    """Install stack NAME as a virtual environment (cpu: about 100 s and 2 GB)."""
    import os

    from runner.backends.install import install_stack
    from runner.cli.sitefile import load_site, site_environment
    from runner.data.stacks import load_stack, lock_of, machine_arch
    from runner.errors import UsageError
    from runner.store.folders import default_home

    stack = load_stack(name)
    lock = lock_of(stack, machine_arch())
    if not stack.cpu or not lock.exists():
        raise UsageError(
            f"stack '{name}' cannot be installed as a virtual environment: it needs CANN",
            hint=f"build its image, or `runner stack adopt {name} FOLDER` for an environment that has it",
        )
    environ = {**os.environ, **site_environment(load_site().site)}
    install_stack(default_home(), stack, lock, environ, lambda line: click.echo(line, err=True))


@command.command("adopt")
@click.argument("name", shell_complete=complete.stacks)
@click.argument("folder", shell_complete=complete.folders)
def adopt(name: str, folder: str) -> None:
    """Use the Python environment in FOLDER (conda, venv) as stack NAME."""
    from pathlib import Path

    from runner.backends.venv import adopt_stack
    from runner.data.stacks import load_stack
    from runner.store.folders import default_home

    adopt_stack(default_home(), load_stack(name), Path(folder).expanduser())
    click.echo(f"stack {name} is {folder}")


@command.command("path")
@click.argument("name", shell_complete=complete.stacks)
def path(name: str) -> None:
    """Print where stack NAME is installed."""
    from runner.backends.venv import find_stack
    from runner.errors import HostError
    from runner.store.folders import default_home

    root = find_stack(default_home(), name)
    if root is None:
        raise HostError(f"stack '{name}' is not on this host", hint="`runner stack list` shows all")
    click.echo(str(root))
