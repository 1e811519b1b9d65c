"""Completes what is known of a run after its end."""

from __future__ import annotations

from pathlib import Path

from runner.backends.venv import find_stack
from runner.errors import UnreachableError
from runner.store.db import Store
from runner.store.manifest import seal_manifest
from runner.submission import read_plan


def seal_runs(home: Path) -> None:
    """Complete the manifests of all runs that have ended, oldest first; UnreachableError on a full disk."""
    store = Store(home)
    try:
        while unsealed := store.unsealed():
            for run in unsealed:
                store.seal(run, seal_manifest(store, run.id, _environment(store, run.id)))
    finally:
        store.close()


def _environment(store: Store, run: int) -> Path | None:
    try:
        stack = read_plan(store, run).stack
    except UnreachableError:
        return None
    return find_stack(store.home, stack) if stack else None
