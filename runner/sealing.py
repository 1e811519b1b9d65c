"""Completes what is known of a run after its end."""

from __future__ import annotations

from pathlib import Path

from runner.store.db import Store


def seal_runs(home: Path) -> None:
    """Complete the manifests of all runs that have ended, oldest first."""
    store = Store(home)
    try:
        while unsealed := store.unsealed():
            for run in unsealed:
                store.seal(run.id, 0)
    finally:
        store.close()
