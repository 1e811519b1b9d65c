"""`runner schema`: the JSON schema of a job file, for editors."""

from __future__ import annotations

import json

import click


def job_schema() -> str:
    """The schema as text; the same code gives the same bytes."""
    from runner.core.jobschema import job_schema as schema

    return json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"


@click.command("schema")
def command() -> None:
    """Print the JSON schema of a job file; jobs/schema.json is this output."""
    click.echo(job_schema(), nl=False)
