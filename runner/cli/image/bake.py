"""`build_image.py bake`: one file for `docker buildx bake`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click


@click.command("bake")
@click.option("--registry", metavar="NAME", help="Before the tags; else DOCKER_REGISTRY, ms-swift.")
@click.option("--to", "path", metavar="FILE", default="docker-bake.json", show_default=True, type=Path)
def command(registry: str | None, path: Path) -> None:
    """Write a target for every stack, generation and architecture, to be run beside Dockerfiles/."""
    from runner.data.stacks import load_stack, stack_names
    from runner.files import write_atomic
    from runner.images.bake import bake_file

    stacks = [load_stack(name) for name in stack_names()]
    baked = bake_file(stacks, registry or os.environ.get("DOCKER_REGISTRY") or "ms-swift")
    write_atomic(path.absolute(), json.dumps(baked, indent=1) + "\n")
    click.echo(f"{path}: {len(baked['target'])} targets; docker buildx bake -f {path} GROUP, of: "
               + ", ".join(baked["group"]))  # fmt: skip
