"""`build_image.py`: names the commands, and takes the documented flags of modelscope's builder."""

from __future__ import annotations

import sys
from typing import ClassVar, NoReturn

import click

from runner.cli.main import LazyGroup, run


class ImageGroup(LazyGroup):
    """The builder's commands."""

    package = "runner.cli.image"
    table: ClassVar[dict[str, str]] = {
        "build": "build the image of a generation",
        "official": "the published image that fits a generation, which needs no build",
        "list": "the stacks of the catalogue",
        "show": "one stack: every pin with its source",
        "diff": "what two stacks pin differently",
        "render": "write the Dockerfiles",
        "lock": "resolve a stack and pin every package by hash",
        "wheelhouse": "fetch all wheels of a stack, for sites without internet",
        "push": "push an image and print its digest",
        "save": "write images and checksums into a folder, for hosts without a registry",
        "load": "load what `save` wrote",
        "bake": "write docker-bake.json for all stacks, generations and architectures",
        "parse-tag": "say what the tag of an image tells",
    }


@click.group(
    cls=ImageGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="ascend-runner", prog_name="build_image.py")
def cli() -> None:
    """Build pinned, locked and verified images for Ascend NPUs.

    The flags of modelscope's build_image.py (--image_type ascend --soc_version ... --dry_run) are taken too.
    """


def main() -> NoReturn:
    """Run the builder; without a command, with modelscope's flags, it builds."""
    if len(sys.argv) > 1 and sys.argv[1].startswith("--image_type"):
        sys.argv.insert(1, "build")
    run(cli, "build_image.py")
