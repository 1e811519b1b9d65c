"""A group of runs side by side: what its matrix says, and where each run has come."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from runner.cli import options
from runner.cli.table import print_table
from runner.core.metrics import Row
from runner.store.db import Run, Store
from runner.store.metrics import final_metrics

_SHOWN = ("loss", "eval_loss", "token_acc", "reward", "grad_norm")


@dataclass(frozen=True)
class _Row:
    run: Run
    metrics: Mapping[str, Any]  # the last values of the last step that has some


def show_group(store: Store, name: str, *, as_json: bool) -> None:
    """Print a table of the group's runs with their final metrics."""
    rows = [_Row(run, _plain(final_metrics(store, run.id))) for run in store.group(name)]
    if as_json:
        runs = [{**asdict(r.run), "final": dict(r.metrics)} for r in rows]
        options.print_json("group/1", {"group": rows[0].run.grp, "runs": runs})
        return
    params = list(dict.fromkeys(p for r in rows for p in r.run.point))
    metrics = [m for m in _SHOWN if any(m in r.metrics for r in rows)]
    click.echo(f"group {rows[0].run.grp}")
    cells = [_cells(r, params, metrics) for r in rows]
    print_table(("RUN", "NAME", "STATE", *params, *(m.upper() for m in metrics)), cells)


def _plain(row: Row) -> dict[str, float | None]:
    """Without numbers that JSON does not have."""
    return {name: value if math.isfinite(value) else None for name, value in row.items()}


def _cells(row: _Row, params: Sequence[str], metrics: Sequence[str]) -> list[str]:
    values = [row.run.point.get(p, "") for p in params]
    numbers = [row.metrics.get(m) for m in metrics]
    return [
        str(row.run.id),
        row.run.name,
        row.run.state,
        *map(str, values),
        *("" if n is None else f"{n:.4g}" for n in numbers),
    ]
