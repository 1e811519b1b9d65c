"""`build_image.py load`: take in what `save` wrote."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import options


@click.command("load")
@click.argument("folder", metavar="FOLDER", type=Path)
@options.as_json
def command(folder: Path, as_json: bool) -> None:
    """Check every file in FOLDER by its checksum, then load the images."""
    from runner.images.bundle import load_images
    from runner.images.engine import find_engine

    loaded = load_images(find_engine(), folder.expanduser(), lambda line: click.echo(line, err=True))
    if as_json:
        options.print_json("images/1", {"images": loaded})
        return
    for entry in loaded:
        click.echo(entry["image"])
