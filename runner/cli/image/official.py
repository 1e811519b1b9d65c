"""`build_image.py official`: the published image that fits, which is the guide's first choice."""

from __future__ import annotations

import click

from runner.cli import options


@click.command("official")
@click.option("--generation", metavar="NAME", help="A2, A3 or 950; on an Ascend host it is detected.")
@click.option("--soc", metavar="NAME", help="SOC_VERSION, instead of the generation.")
@click.option("--os", metavar="NAME", help="ubuntu or openeuler, with or without its release.")
@click.option("--python", metavar="VERSION", help="Only with this Python.")
@click.option("--driver", metavar="VERSION", help="The host's driver (HDK), such as 25.5.2.")
@options.as_json
def command(
    generation: str | None,
    soc: str | None,
    os: str | None,
    python: str | None,
    driver: str | None,
    as_json: bool,
) -> int:
    """List published ms-swift images for this hardware, the newest first."""
    from dataclasses import asdict

    from runner.core.official import fitting
    from runner.core.parse.tags import parse_tag
    from runner.data.support import load_hardware, load_official, load_support, load_unsupported
    from runner.errors import HostError, UsageError
    from runner.images.choose import Asked, chosen_generation
    from runner.images.detect import detect_soc

    asked = Asked(generation, soc or (None if generation else detect_soc()))
    chosen = chosen_generation(asked, load_hardware(), load_unsupported())
    if chosen in (None, "cpu"):
        raise UsageError("for which hardware?", hint="--generation A2, A3 or 950, or --soc ascend910b1")
    published = load_official()
    tags = [parse_tag(f"{published.repository}:{one.tag}") for one in published.tags]
    fit = fitting(
        tags, generation=str(chosen), os=os, python=python, driver=driver, rows=load_support().driver.rows
    )
    if as_json:
        options.print_json("official/1", {"source": published.source, "images": [asdict(t) for t in fit]})
        return 0 if fit else 3
    if not fit:
        also = f" with driver {driver}" if driver else ""
        raise HostError(
            f"no published image of ms-swift is known for {chosen}{also}",
            hint=f"build one: python build_image.py build --generation {chosen}",
        )
    for tag in fit:
        click.echo(f"{tag.repository}:{tag.tag}")
    return 0
