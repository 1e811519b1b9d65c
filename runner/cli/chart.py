"""Metrics of a training for people: a line of its last values, a chart in the terminal, a picture."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from runner.core.metrics import Row
from runner.errors import HostError, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SAID = {"loss": "loss", "reward": "reward", "grad_norm": "grad_norm", "learning_rate": "learning rate"}
_PANELS = ("loss", "reward", "learning_rate", "grad_norm")
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # the braille cell, by column and row
_HEIGHT = 8
Point = tuple[float, float]


def final_line(last: Row) -> str:
    """The last values, in a line."""
    total = f"/{last['max_steps']:g}" if "max_steps" in last else ""
    said = [f"step {last['step']:g}{total}"]
    said += [f"{name} {last[key]:.4g}" for key, name in _SAID.items() if key in last]
    if "memory(GiB)" in last:
        said.append(f"memory {last['memory(GiB)']:.4g} GiB")
    if "eval_loss" in last:
        best = f" (lowest {last['best_eval_loss']:.4g} at step {last['best_eval_step']:g})"
        said.append(f"eval_loss {last['eval_loss']:.4g}" + (best if "best_eval_loss" in last else ""))
    return ", ".join(said)


def chart(rows: Sequence[Row], metric: str, width: int | None = None) -> list[str]:
    """The metric over the steps in lines as wide as the terminal; none with fewer than two points."""
    points = _points(rows, metric)
    if len(points) < 2:
        return []
    low, high = min(y for _, y in points), max(y for _, y in points)
    named = {0: f"{high:.4g}", _HEIGHT - 1: f"{low:.4g}"}
    left = max(map(len, named.values()))
    columns = max(20, (width or min(shutil.get_terminal_size().columns, 120)) - left - 4)
    lines = _braille(points, columns, low, high)
    first, last = f"{points[0][0]:g}", f"{points[-1][0]:g}"
    return [
        f"{metric}",
        *[
            f"{named.get(i, ''):>{left}} {'┤' if i in named else '│'}{t.rstrip()}"
            for i, t in enumerate(lines)
        ],
        f"{'':{left}} └{'─' * columns}",
        f"{'':{left}}  {first}{last:>{columns - len(first)}}",
    ]


def _braille(points: Sequence[Point], columns: int, low: float, high: float) -> list[str]:
    """A line through the points, drawn with 2 x 4 dots in each character."""
    cells = [[0x2800] * columns for _ in range(_HEIGHT)]
    across = (2 * columns - 1) / ((points[-1][0] - points[0][0]) or 1)
    down = (4 * _HEIGHT - 1) / (high - low) if high > low else 0.0
    dots = [(round((x - points[0][0]) * across), round((high - y) * down)) for x, y in points]
    for (x0, y0), (x1, y1) in pairwise(dots):
        parts = max(x1 - x0, abs(y1 - y0), 1)
        for i in range(parts + 1):
            x, y = round(x0 + (x1 - x0) * i / parts), round(y0 + (y1 - y0) * i / parts)
            cells[y // 4][x // 2] |= _DOTS[x % 2][y % 4]
    return ["".join(map(chr, row)).replace("\u2800", " ").rstrip() for row in cells]


def write_png(path: Path, title: str, metrics: Mapping[str, Sequence[Row]]) -> None:
    """A picture with a column of panels for each step; HostError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as e:
        if e.name is None or e.name.partition(".")[0] != "matplotlib":
            raise
        hint = "pip install 'ascend-runner[plot]'"
        raise HostError("--png draws with matplotlib, which is not installed", hint=hint) from e
    shown = [p for p in _PANELS if p == "loss" or any(_points(rows, p) for rows in metrics.values())]
    size = (7.0 * len(metrics), 4.0 + 1.6 * (len(shown) - 1))
    figure = Figure(figsize=size, layout="constrained")
    heights = [4.0 if p == "loss" else 1.6 for p in shown]
    panels = figure.subplots(len(shown), len(metrics), squeeze=False, sharex="col", height_ratios=heights)
    for column, (step, rows) in enumerate(metrics.items()):
        for row, metric in enumerate(shown):
            _panel(panels[row][column], rows, metric)
        panels[0][column].set_title(f"{title}: {step}")
        panels[-1][column].set_xlabel("step")
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as e:
        raise UsageError(f"cannot write {path}: {e.strerror}") from e


def _panel(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    for name in (metric, f"eval_{metric}"):
        if points := _points(rows, name):
            axes.plot(*zip(*points, strict=True), label=name, marker="." if len(points) < 30 else "")
    axes.set_ylabel(_SAID[metric])
    axes.grid(alpha=0.3)
    if _points(rows, f"eval_{metric}"):
        axes.legend()


def _points(rows: Sequence[Row], metric: str) -> list[Point]:
    return [(row["step"], row[metric]) for row in rows if math.isfinite(row.get(metric, math.nan))]
