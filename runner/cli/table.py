"""Tables for people: aligned whatever the script of a name is, coloured on a terminal, whole in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_STATES = {
    "SUCCEEDED": "green", "RUNNING": "cyan", "ACTIVE": "cyan", "FAILED": "red", "LOST": "red",
    "CANCELLED": "yellow", "SKIPPED": "dim", "BACKOFF": "yellow",
}  # fmt: skip
_PIPE_WIDTH = 10_000


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """One row a line; on a terminal what does not fit is cut with an ellipsis, elsewhere nothing is."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*[Text(cell, style=_STATES.get(cell, "")) for cell in row])
    console.print(table)
