"""`runner show`: one run, its steps, outputs, metrics and results."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import complete, options
from runner.cli.ps import age
from runner.cli.table import print_table
from runner.core.metrics import Row, final
from runner.errors import UsageError
from runner.files import read_json

if TYPE_CHECKING:
    from runner.store.db import AttemptRow, Run, Step
    from runner.store.folders import RunFolder


@click.command("show")
@click.argument("run", required=False, shell_complete=complete.runs)
@options.group
@click.option("--png", type=click.Path(path_type=Path), metavar="FILE", help="Also draw the metrics.")
@options.as_json
def command(run: str | None, group: str | None, png: Path | None, as_json: bool) -> None:
    """Show RUN (a number or a name; the newest run without one), or compare the runs of a group."""
    from runner.cli.home import open_store
    from runner.store.metrics import run_metrics

    with open_store() as store:
        if group:
            from runner.cli.groups import show_group

            show_group(store, group, as_json=as_json)
            return
        found = store.find(run)
        steps = store.steps(found.id)
        attempts = store.attempts(found.id)
        folder = store.folder(found.id)
        metrics = run_metrics(store, found.id)
    if png:
        _draw(png, found, metrics)
    if as_json:
        whole = {"run": asdict(found), "folder": str(folder.path), "steps": [asdict(s) for s in steps]}
        numbers = {n: {"rows": [_plain(r) for r in m], "final": _plain(final(m))} for n, m in metrics.items()}
        options.print_json("run/1", {**whole, "attempts": [asdict(a) for a in attempts], "metrics": numbers})
        return
    click.echo(f"run {found.id}  {found.name}  {found.state}")
    click.echo(f"  job     {found.file}")
    click.echo(f"  folder  {folder.path}")
    _print_steps(steps, attempts)
    _print_found(steps, folder)
    _print_metrics(metrics)


def _print_steps(steps: Sequence[Step], attempts: Sequence[AttemptRow]) -> None:
    rows = []
    for step in steps:
        took = age((step.ended or time.time()) - step.started) if step.started else ""
        tries = sum(a.step == step.name for a in attempts)
        said = "" if step.state == "SUCCEEDED" else step.why or step.message or step.reason or ""
        rows.append((step.name, step.kind, step.state, took, str(tries or ""), said))
    print_table(("STEP", "KIND", "STATE", "TIME", "TRIES", "WHY"), rows)


def _print_found(steps: Sequence[Step], folder: RunFolder) -> None:
    for step in steps:
        for name, value in step.outputs.items():
            click.echo(f"{step.name}.{name}: {value.replace(f'{folder.path}/', '')}")
        for line in _results(folder.output(step.name)):
            click.echo(f"{step.name}: {line}")


def _results(output: Path) -> list[str]:
    """What the shipped scripts found, in a line each."""
    lines = []
    if verify := read_json(output / "verify.json"):
        lines.append(f"verify: {verify.get('message')}")
    if answer := read_json(output / "answer.json"):
        lines.append(f"probe: {answer.get('message')}")
    return lines


def _print_metrics(metrics: Mapping[str, Sequence[Row]]) -> None:
    from runner.cli.chart import chart, final_line

    for step, rows in metrics.items():
        click.echo(f"{step}: {final_line(final(rows))}")
        with contextlib.suppress(UnicodeEncodeError):  # a terminal of GBK has no dots to draw with
            click.echo("".join(f"{line}\n" for line in chart(rows, "loss")), nl=False)


def _draw(png: Path, run: Run, metrics: Mapping[str, Sequence[Row]]) -> None:
    from runner.cli.chart import write_png

    if not metrics:
        raise UsageError(f"run {run.id} has no metrics to draw", hint="only trainings log some")
    write_png(png, f"run {run.id}", metrics)
    click.echo(f"wrote {png}", err=True)


def _plain(row: Row) -> dict[str, float | None]:
    """JSON has no word for what is not finite."""
    return {name: value if math.isfinite(value) else None for name, value in row.items()}
