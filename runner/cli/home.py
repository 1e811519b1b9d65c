"""The state that a command works on, and the agent behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.agent import ensure_agent
from runner.backends.base import Backend
from runner.backends.local import LocalBackend
from runner.cli.sitefile import load_site
from runner.core.site import environment
from runner.store.db import Store
from runner.store.folders import default_home


@contextmanager
def open_store() -> Iterator[Store]:
    """The store of RUNNER_HOME; open runs without an agent get one."""
    store = Store(default_home())
    try:
        if store.open_runs():
            revive(store)
        yield store
    finally:
        store.close()


def revive(store: Store) -> None:
    """Make sure that an agent drives the open runs."""
    site = load_site().site
    env = {k: str(Path(v).expanduser()) if v.startswith("~") else v for k, v in environment(site).items()}
    store.close()
    try:
        ensure_agent(store.home, make_backend, env)
    finally:
        store.open()


def make_backend(home: Path) -> Backend:
    """The backend of this host."""
    return LocalBackend(home)
