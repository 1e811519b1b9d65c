"""`runner show`: one run, its steps, outputs and results."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import click

from runner.cli import options
from runner.cli.ps import age
from runner.cli.table import print_table
from runner.files import read_json


@click.command("show")
@click.argument("run", required=False)
@options.as_json
def command(run: str | None, as_json: bool) -> None:
    """Show RUN (a number or a name; the newest run without one)."""
    from runner.cli.home import open_store

    with open_store() as store:
        found = store.find(run)
        steps = store.steps(found.id)
        attempts = store.attempts(found.id)
        folder = store.folder(found.id)
    if as_json:
        whole = {"run": asdict(found), "folder": str(folder.path), "steps": [asdict(s) for s in steps]}
        options.print_json("run/1", {**whole, "attempts": [asdict(a) for a in attempts]})
        return
    click.echo(f"run {found.id}  {found.name}  {found.state}")
    click.echo(f"  job     {found.file}")
    click.echo(f"  folder  {folder.path}")
    rows = []
    for step in steps:
        took = age((step.ended or time.time()) - step.started) if step.started else ""
        tries = sum(a.step == step.name for a in attempts)
        said = "" if step.state == "SUCCEEDED" else step.why or step.message or step.reason or ""
        rows.append((step.name, step.kind, step.state, took, str(tries or ""), said))
    print_table(("STEP", "KIND", "STATE", "TIME", "TRIES", "WHY"), rows)
    for step in steps:
        for name, value in step.outputs.items():
            click.echo(f"{step.name}.{name}: {_short(value, folder.path)}")
        for line in _results(folder.output(step.name)):
            click.echo(f"{step.name}: {line}")


def _short(value: str, folder: Path) -> str:
    return value.replace(f"{folder}/", "")


def _results(output: Path) -> list[str]:
    """What the shipped scripts found, in a line each."""
    lines = []
    if verify := read_json(output / "verify.json"):
        lines.append(f"verify: {verify.get('message')}")
    if answer := read_json(output / "answer.json"):
        lines.append(f"probe: {answer.get('message')}")
    return lines
