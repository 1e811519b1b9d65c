"""`build_image.py parse-tag`: what the tag of an image tells."""

from __future__ import annotations

import click

from runner.cli import options


@click.command("parse-tag")
@click.argument("reference", metavar="IMAGE")
@options.as_json
def command(reference: str, as_json: bool) -> None:
    """Say what IMAGE, a reference such as quay.io/ascend/ms-swift:v4.1.3-A3-py311 or a tag alone, tells."""
    from dataclasses import asdict

    from runner.core.parse.tags import parse_tag

    tag = asdict(parse_tag(reference))
    if as_json:
        options.print_json("image-tag/1", tag)
        return
    for name, value in tag.items():
        if value and name not in ("tag", "assumed"):
            click.echo(f"{name:11} {value}{'  (not said: implied)' if name in tag['assumed'] else ''}")
