"""Which runs a command is about: by number, by name, or a whole group."""

from __future__ import annotations

from collections.abc import Sequence

from runner.errors import UsageError
from runner.store.db import Run, Store


def chosen_runs(store: Store, runs: Sequence[str], group: str | None) -> list[Run]:
    """These runs, or all of a group, or the newest run when nothing is named; each once."""
    if group and runs:
        raise UsageError("name runs or a group, not both")
    found = store.group(group) if group else [store.find(r) for r in runs] or [store.find(None)]
    return list({r.id: r for r in found}.values())
