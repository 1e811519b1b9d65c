"""Tables for people: aligned whatever the script of a name is, coloured on a terminal, whole in a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence

_STATES = {
    "SUCCEEDED": "32", "RUNNING": "36", "ACTIVE": "36", "FAILED": "31", "LOST": "31",
    "CANCELLED": "33", "SKIPPED": "2", "BACKOFF": "33", "HELD": "33",
}  # fmt: skip
_GAP = "  "
_NARROWEST = 8


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """One row a line; on a terminal what does not fit is cut with an ellipsis, elsewhere nothing is."""
    from rich.cells import cell_len  # of rich only what is needed: all of it takes 0.1 s to load

    table = [list(columns), *(list(row) for row in rows)]
    widths = [max(cell_len(row[i]) for row in table) for i in range(len(columns))]
    terminal = sys.stdout.isatty()
    if terminal:
        _narrow(widths, shutil.get_terminal_size().columns)
    colours = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    for n, row in enumerate(table):
        cells = [_cell(text, width, colours, head=n == 0) for text, width in zip(row, widths, strict=True)]
        print(_GAP.join(cells).rstrip())


def _narrow(widths: list[int], most: int) -> None:
    """Take from the widest column until the row fits."""
    while sum(widths) + len(_GAP) * (len(widths) - 1) > most and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1


def _cell(text: str, width: int, colours: bool, *, head: bool) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > width:
        text = set_cell_size(text, width - 1) + "…"
    style = "1" if head else _STATES.get(text)
    padded = text + " " * (width - cell_len(text))
    return f"\x1b[{style}m{padded}\x1b[0m" if colours and style else padded
