"""Who is told of a run's end, and what."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from runner.core.notice import Ended, Hook, why_ended
from runner.core.plan import PlannedNotify
from runner.core.site import Notify
from runner.errors import RunnerError, UnreachableError
from runner.notify import notify
from runner.store.db import Run, Store
from runner.store.memory import held_secrets
from runner.store.metrics import final_metrics
from runner.submission import read_plan


def tell_end(home: Path, run: Run, site: Notify | None) -> None:
    """Tell the job's hook, or else the site's, that a run has ended; what hinders it is said on stderr."""
    store: Store | None = None
    try:
        store = Store(home)
        asked = _asked(store, run.id)
        hook = hook_of(asked, held_secrets(home, run.id)) if asked else _sites(site)
        if hook:
            notify(hook, ended_run(store, run))
    except RunnerError as e:
        print(f"notify of run {run.id}: {e.message}", file=sys.stderr, flush=True)
    finally:
        if store:
            store.close()


def hook_of(asked: PlannedNotify, held: Mapping[str, str]) -> Hook:
    """The job's hook with the values of its variables; RunnerError when one is lost or is no address."""
    if lost := [name for name in asked.variables if name not in held]:
        raise RunnerError(f"lost {', '.join(lost)} when the host restarted")
    url = asked.url or held[asked.url_env or ""].strip()
    if not re.fullmatch(r"https?://\S+", url):
        raise RunnerError(f"{asked.url_env} holds no http address")
    return Hook(url, asked.kind, held[asked.secret_env].strip() if asked.secret_env else None)


def ended_run(store: Store, run: Run) -> Ended:
    """What is told of a run."""
    steps = store.steps(run.id)
    first = next((s for s in steps if s.state in ("FAILED", "LOST", "CANCELLED")), None)
    why = None
    if first:
        why = why_ended(first.state, first.reason, first.code, first.signal)
        why += f" ({first.message})" if first.message else ""
    began = min((s.started for s in steps if s.started and s.started >= (run.reopened or 0)), default=None)
    seconds = round(run.ended - began, 1) if run.ended and began else None
    loss = final_metrics(store, run.id).get("loss")
    name = first.name if first else None
    return Ended(run.id, run.name, run.state, socket.gethostname(), seconds, name, why, loss)


def _asked(store: Store, run: int) -> PlannedNotify | None:
    try:
        return read_plan(store, run).notify
    except UnreachableError:  # the run has ended because of it
        return None


def _sites(site: Notify | None) -> Hook | None:
    return Hook(site.url, site.kind, site.secret) if site else None
