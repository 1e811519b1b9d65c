"""`build_image.py push`: push images and print their digests."""

from __future__ import annotations

import click

from runner.cli import options


@click.command("push")
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True)
@options.as_json
def command(images: tuple[str, ...], as_json: bool) -> None:
    """Push IMAGEs; prints each with the digest that the registry has it by."""
    from runner.images.engine import find_engine
    from runner.images.push import push_image

    engine = find_engine()
    pushed = {}
    for image in images:
        pushed[image] = push_image(engine, image, lambda line: click.echo(line, err=True))
        if not as_json:
            click.echo(f"{image} {pushed[image]}")
    if as_json:
        options.print_json("pushed/1", {"images": pushed})
