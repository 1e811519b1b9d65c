"""Options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
sets: Decorator = click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE", help="Give a param a value."
)
stack: Decorator = click.option("--stack", metavar="NAME", help="Use this stack instead of the job's.")
offline: Decorator = click.option(
    "--offline", is_flag=True, help="Never ask a hub; what is not in the cache is an error."
)


def print_json(schema: str, value: object) -> None:
    """One JSON object with the version of its shape."""
    body = value if isinstance(value, dict) else {"items": value}
    click.echo(json.dumps({"schema": schema, **body}, ensure_ascii=False, indent=1))
