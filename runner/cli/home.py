"""The state that a command works on, and the agent behind it.

What only an agent needs is imported where one is started: most commands need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from runner.store.db import Run, Store
from runner.store.folders import default_home

if TYPE_CHECKING:
    from runner.engine import Host


@contextmanager
def open_store() -> Iterator[Store]:
    """The store of RUNNER_HOME; open runs without an agent get one."""
    store = Store(default_home())
    try:
        if store.has_open() or store.unsealed() or store.half_written():
            revive(store)
        yield store
    finally:
        store.close()


def revive(store: Store) -> None:
    """Make sure that an agent drives the open runs."""
    from runner.agent import ensure_agent

    store.close()
    try:
        ensure_agent(store.home, set_up)
    finally:
        store.open()


def attended(store: Store, until: Callable[[], bool]) -> Callable[[], bool]:
    """The same condition; whoever looks at it also gives the open runs another agent when theirs has died."""
    from runner.agent import has_agent

    def look() -> bool:
        over = until()
        if not over and store.has_open() and not has_agent(store.home):
            revive(store)
        return over

    return look


def set_up(home: Path) -> Host:
    """The backend of this host, its limits, and the site's notification of a run's end."""
    from runner.backends.local import LocalBackend
    from runner.cli.sitefile import load_site, site_environment
    from runner.cli.told import tell_end
    from runner.core.limits import Limits
    from runner.engine import Host

    site = load_site().site

    def ended(run: Run) -> None:
        tell_end(home, run, site.notify)

    backend = LocalBackend(home, site_environment(site))
    cpus, memory = backend.capacity()
    asked = site.limits
    return Host(backend, Limits(asked.runs, asked.cpus or cpus, asked.memory or memory), ended)
