"""`build_image.py save`: images as files, for hosts without a registry."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import options


@click.command("save")
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True)
@click.option("--to", "folder", metavar="FOLDER", required=True, type=Path, help="Where the files go.")
@options.as_json
def command(images: tuple[str, ...], folder: Path, as_json: bool) -> None:
    """Write IMAGEs and their checksums into a folder that `load` reads."""
    from runner.images.bundle import save_images
    from runner.images.engine import find_engine

    saved = save_images(find_engine(), images, folder.expanduser(), lambda line: click.echo(line, err=True))
    if as_json:
        options.print_json("images/1", {"images": saved})
        return
    for entry in saved:
        click.echo(f"{folder / entry['file']}  {entry['bytes'] / 1e9:.2f} GB  sha256:{entry['sha256']}")
