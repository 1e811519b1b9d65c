"""`build_image.py wheelhouse`: every file that a build needs, in a folder."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import complete


@click.command("wheelhouse")
@click.argument("name", metavar="STACK", shell_complete=complete.stacks)
@click.option("--arch", type=click.Choice(["arm", "x86"]), help="Else this machine's.")
@click.option("--to", "folder", metavar="FOLDER", default="wheelhouse", show_default=True, type=Path)
@click.option("--near", multiple=True, metavar="FOLDER", type=Path,
              help="Look here first for what is not locked.")  # fmt: skip
def command(name: str, arch: str | None, folder: Path, near: tuple[Path, ...]) -> int:
    """Fetch all that STACK is locked to, checked by hash, for `build --wheelhouse FOLDER`."""
    from runner.core.lockfile import read_lock
    from runner.data.stacks import load_stack, lock_of, machine_arch
    from runner.errors import UsageError
    from runner.images.wheelhouse import fill

    stack, arch = load_stack(name), arch or machine_arch()
    path = lock_of(stack, arch)
    if not path.exists():
        raise UsageError(
            f"there is no lock {path.name}", hint=f"`python build_image.py lock {name}` makes it"
        )
    lock = read_lock(path.read_text(encoding="utf-8"), path.name)
    missing = fill(stack, lock, arch, folder.expanduser(), near, lambda line: click.echo(line, err=True))
    for what in missing:
        click.echo(f"missing: {what}", err=True)
    click.echo(f"{folder}: {sum(1 for f in folder.iterdir() if f.is_file())} files, {len(missing)} missing")
    return int(bool(missing))
