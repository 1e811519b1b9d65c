"""`build_image.py render`: write the Dockerfiles of the catalogue."""

from __future__ import annotations

import click

from runner.cli import complete


@click.command("render")
@click.argument("stacks", nargs=-1, metavar="[STACK]...", shell_complete=complete.stacks)
@click.option("--check", is_flag=True, help="Write nothing: exit 1 when a committed file would change.")
def command(stacks: tuple[str, ...], check: bool) -> int:
    """Write Dockerfiles/rendered for STACKs (all without one), each for all of its generations."""
    from runner.data.stacks import CATALOGUE, load_stack, stack_names
    from runner.files import write_atomic
    from runner.images.render import rendered

    names = stacks or stack_names()
    files = {name: text for n in names for name, text in rendered(load_stack(n), CATALOGUE).items()}
    folder = CATALOGUE / "rendered"
    stale = [n for n, text in files.items() if not (folder / n).exists() or (folder / n).read_text() != text]
    if not stacks:
        stale += sorted({p.name for p in folder.iterdir()} - set(files)) if folder.exists() else []
    for name in stale:
        if not check and name in files:
            folder.mkdir(exist_ok=True)
            write_atomic(folder / name, files[name])
        click.echo(
            f"{name} {'differs' if check else 'written' if name in files else 'is of no stack: remove it'}"
        )
    return int(check and bool(stale))
