"""`runner site`: what this host and this user always want."""

from __future__ import annotations

import click

from runner.cli import options


@click.group("site")
def command() -> None:
    """Show or make the site file."""


@command.command("show")
@options.as_json
def show(as_json: bool) -> None:
    """Print the site as it holds, and which file says what."""
    from runner.cli.sitefile import HOST_FILE, load_site, user_file

    loaded = load_site()
    if as_json:
        options.print_json("site/1", {"site": loaded.site.model_dump(), "origins": loaded.origins})
        return
    import yaml

    for path in (HOST_FILE, user_file()):
        click.echo(f"# {path}: {'read' if path.is_file() else 'not there'}")
    click.echo(yaml.safe_dump(loaded.site.model_dump(), sort_keys=False, allow_unicode=True).rstrip())
    for key, origin in sorted(loaded.origins.items()):
        click.echo(f"# {key} is from {origin}")


@command.command("init")
@click.option("--force", is_flag=True, help="Replace the file that is there.")
def init(force: bool) -> None:
    """Write a site file with every key explained."""
    from runner.cli.sitefile import user_file
    from runner.core.site import EXAMPLE
    from runner.errors import UsageError
    from runner.files import write_atomic

    path = user_file()
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="edit it, or `runner site init --force`")
    write_atomic(path, EXAMPLE)
    click.echo(str(path))
