"""What a shell may complete: read-only, and quick because nothing of the program's own is imported.

Each function is a `shell_complete` of click. They never make a home and never start an agent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

import runner

_RUNS = 200
_STACKS = Path(runner.__file__).parent.parent / "Dockerfiles" / "stacks"
Items = list[CompletionItem]


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Numbers, newest first, then names; those that are on the line already are left out."""
    at = "strftime('%m-%d %H:%M', created, 'unixepoch', 'localtime')"
    known = f"FROM runs WHERE state != 'NEW' ORDER BY id DESC LIMIT {_RUNS}"
    rows = _rows(f"SELECT id, name, state || ' ' || {at} {known}")
    newest: dict[str, str] = {}
    for number, name, _ in rows:
        newest.setdefault(name, f"run {number}")
    numbers = [(str(number), f"{name} {said}") for number, name, said in rows]
    written = ctx.params.get(str(param.name))
    chosen = written if isinstance(written, (list, tuple)) else ()
    return _items([(v, h) for v, h in [*numbers, *newest.items()] if v not in chosen], incomplete)


def steps(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The steps of the run on the line, else of the newest one."""
    # click gives up on a line that ends with an option before it has given the words their names
    written = ctx.params.get("run") or next(iter(ctx.args), None)
    newest = "SELECT id FROM runs WHERE state != 'NEW' AND (?1 IS NULL OR name = ?1) ORDER BY id DESC LIMIT 1"
    number = int(written) if isinstance(written, str) and written.isdecimal() else None
    query = f"SELECT name, state FROM steps WHERE run = coalesce(?2, ({newest})) ORDER BY idx"
    return _items(_rows(query, (written, number)), incomplete)


def groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The groups, newest first."""
    found = _rows("SELECT grp, count(*) FROM runs WHERE grp IS NOT NULL GROUP BY grp ORDER BY max(id) DESC")
    return _items([(name, f"{count} runs") for name, count in found], incomplete)


def stacks(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The stacks of the catalogue."""
    return _items([(path.stem, None) for path in sorted(_STACKS.glob("*.yaml"))], incomplete)


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Files, as the shell itself completes them."""
    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Folders, as the shell itself completes them."""
    return [CompletionItem(incomplete, type="dir")]


def _items(found: Sequence[tuple[Any, ...]], incomplete: str) -> Items:
    return [CompletionItem(value, help=said) for value, said in found if value.startswith(incomplete)]


def _rows(query: str, key: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query; nothing when there is no state, or none that this program can read."""
    import sqlite3

    from runner.store.folders import default_home

    path = default_home() / "state.db"
    if not path.is_file():
        return []
    with contextlib.suppress(sqlite3.Error):
        db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0.1)
        with contextlib.closing(db):
            return db.execute(query, key).fetchall()
    return []
