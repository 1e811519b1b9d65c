"""Options that several commands share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from runner.cli import complete

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
sets: Decorator = click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE", help="Give a param a value."
)
stack: Decorator = click.option(
    "--stack", metavar="NAME", help="Use this stack instead of the job's.", shell_complete=complete.stacks
)
offline: Decorator = click.option(
    "--offline", is_flag=True, help="Never ask a hub; what is not in the cache is an error."
)
group: Decorator = click.option(
    "--group", metavar="NAME", help="The runs of this group.", shell_complete=complete.groups
)
_FOLLOW = "Print what the steps print until the end (on a terminal the default)."
_WAIT = "Wait for the end in silence; the exit code is the run's."
_STAY: tuple[Decorator, ...] = (
    click.option("--follow", "how", flag_value="follow", help=_FOLLOW),
    click.option("--wait", "how", flag_value="wait", help=_WAIT),
    click.option("--detach", "how", flag_value="detach", help="Only start it."),
)


def _writable(ctx: click.Context, param: click.Parameter, value: str | None) -> Path | None:
    if value is None:
        return None
    from runner.cli.junit import writable

    return writable(value)


junit: Decorator = click.option(
    "--junit", metavar="FILE", callback=_writable, help="Write a JUnit report of the end into FILE."
)


def stay(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--follow`, `--wait` and `--detach`, as the parameter `how`."""
    for decorate in reversed(_STAY):
        command = decorate(command)
    return command


def chosen_stay(how: str | None, *, quiet: bool = False) -> str:
    """What was asked for, else to follow on a terminal and to leave elsewhere."""
    return how or ("follow" if os.isatty(1) and not quiet else "detach")


def print_json(schema: str, value: object) -> None:
    """One JSON object with the version of its shape."""
    body = value if isinstance(value, dict) else {"items": value}
    click.echo(json.dumps({"schema": schema, **body}, ensure_ascii=False, indent=1))
