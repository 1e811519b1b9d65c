"""What a person asks of the engine: a new run, another try of an ended one, a held one let go."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.backends.base import Backend
from runner.core.manifest import Asked
from runner.core.plan import Plan
from runner.core.stack import Stack
from runner.errors import RunnerError, UnreachableError, UsageError
from runner.files import write_atomic
from runner.store.db import Run, Store
from runner.store.manifest import begin_manifest
from runner.store.memory import hold, let_go, lost_secrets
from runner.store.snapshot import snapshot
from runner.store.story import Story


@dataclass(frozen=True)
class Submission:
    """One run to be: its text and plan, the folder its steps see a copy of, and where it stands in line."""

    plan: Plan
    raw: bytes
    file: Path  # the job file, for people
    folder: Path  # what is copied
    copy: bool = True
    priority: int = 0
    held: bool = False
    group: str | None = None
    point: Mapping[str, Any] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)  # how it was asked for: sets, stack, offline
    stack: Stack | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The spec as it was written."""
        return self.raw.decode("utf-8", "replace")

    def known(self, inherited: Mapping[str, str]) -> Asked:
        """What the manifest says of it."""
        return Asked(
            name=self.plan.name,
            file=str(self.file),
            spec=self.text,
            plan=self.plan,
            stack=self.stack,
            params=self.params,
            point=self.point,
            said=self.said,
            inherited=inherited,
        )


def submit(store: Store, backend: Backend, asked: Submission, first: int | None = None) -> int:
    """Write the run down, with a copy of the job's folder; nothing starts yet. `first` begins its group."""
    with _writing(store.home, fcntl.LOCK_SH):
        return _submit(store, backend, asked, first)


def clear(store: Store) -> None:
    """Undo what submits that were killed have left behind; nothing while one is at work."""
    with contextlib.suppress(BlockingIOError), _writing(store.home, fcntl.LOCK_EX | fcntl.LOCK_NB):
        for run in store.half_written():
            let_go(store.home, run)
            shutil.rmtree(store.folder(run).path, ignore_errors=True)
            store.drop_run(run)


@contextlib.contextmanager
def _writing(home: Path, how: int) -> Iterator[None]:
    with (home / "submit.lock").open("a") as f:
        fcntl.flock(f, how)
        yield


def _submit(store: Store, backend: Backend, asked: Submission, first: int | None) -> int:
    run = _new_run(store, asked)
    group = f"{asked.group}.{first or run}" if asked.group else None
    folder = store.folder(run)
    try:
        write_atomic(folder.spec, asked.text)
        linked = snapshot(asked.folder, folder.snapshot) if asked.copy else None
        inherited = backend.inherited(os.environ)
        begin_manifest(folder, asked.known(inherited), asked.folder, linked)
        hold(store.home, run, asked.plan, os.environ, inherited)
        write_atomic(folder.plan, asked.plan.model_dump_json(indent=1) + "\n")
        told = {"name": asked.plan.name, "file": str(asked.file), "priority": asked.priority, "group": group}
        told = {**told, "held": asked.held}
        Story(folder.events).tell(event="submitted", **told, point=dict(asked.point), said=dict(asked.said))
        store.queue(run, group=group, held=asked.held)
    except (RunnerError, OSError) as e:
        let_go(store.home, run)
        shutil.rmtree(folder.path, ignore_errors=True)
        with contextlib.suppress(UnreachableError):  # on a full disk the NEW row stays, which nobody looks at
            store.drop_run(run)
        if isinstance(e, RunnerError):
            raise
        raise _unwritable(folder.path, e) from e
    return run


def _new_run(store: Store, asked: Submission) -> int:
    """A row with an empty folder; a number whose folder is there already is nobody's to overwrite."""
    while True:
        run = store.add_run(asked.plan, str(asked.file), priority=asked.priority, point=asked.point)
        folder = store.folder(run)
        try:
            folder.path.mkdir(parents=True)
            return run
        except FileExistsError:
            store.drop_run(run)
            if folder.plan.exists():
                message = f"{folder.path} holds a run that the index does not know"
                raise UnreachableError(message, hint="`runner recover` enters it") from None
        except OSError as e:
            store.drop_run(run)
            raise _unwritable(folder.path, e) from e


def _unwritable(path: Path, error: OSError) -> UnreachableError:
    hint = "free disk space or set RUNNER_HOME"
    return UnreachableError(f"cannot write {path}: {error.strerror}", hint=hint)


def retry(store: Store, backend: Backend, run: Run, *, resume: bool) -> list[str]:
    """Open an ended run again where it did not succeed; the steps that get another try.

    UsageError when it has not ended or has nothing to do again, HostError when this host cannot run it.
    """
    if run.ended is None:
        raise UsageError(f"run {run.id} has not ended", hint=f"`runner stop {run.id}` ends it")
    plan = read_plan(store, run.id)
    backend.environment(plan)
    again = {s.name for s in store.steps(run.id) if s.state != "SUCCEEDED"}
    if not again:
        message = f"run {run.id} has succeeded, there is nothing to try again"
        raise UsageError(message, hint=f"`runner submit --from {run.id}` runs all of it anew")
    if resume and not any(s.resumable for s in plan.steps if s.name in again):
        names = ", ".join(sorted(again))
        raise UsageError(f"run {run.id} has no training to go on with (steps to try again: {names})")
    served = {n for s in plan.steps if s.name in again for n in s.needs if plan.step(n).service}
    chosen = [s.name for s in plan.steps if s.name in again | served]

    def ready() -> None:
        hold(store.home, run.id, plan, os.environ, backend.inherited(os.environ))
        Story(store.folder(run.id).events).tell(event="retried", steps=chosen, resume=resume)

    store.reopen(run.id, chosen, resume=resume, ready=ready)
    return chosen


def release(store: Store, backend: Backend, run: Run) -> bool:
    """Let a held run go, and give one that lost its secrets those that are set now; False when neither."""
    if run.ended is not None:
        raise UsageError(f"run {run.id} has ended: {run.state}")
    plan = read_plan(store, run.id)
    held = any(s.state == "HELD" for s in store.steps(run.id))
    lost = any(lost_secrets(store.home, run.id, s) for s in plan.steps)
    if held or lost:
        hold(store.home, run.id, plan, os.environ, backend.inherited(os.environ))
    if held:
        Story(store.folder(run.id).events).tell(event="released")
        store.release(run.id)
    return held or lost


def read_plan(store: Store, run: int) -> Plan:
    """A run's plan; UnreachableError when it cannot be read."""
    path = store.folder(run).plan
    try:
        return Plan.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as e:
        why = e.strerror
    except ValueError as e:
        why = str(e).partition("\n    For further")[0]  # pydantic adds an address
    raise UnreachableError(f"{path} is unreadable: {why}", hint=f"`runner rm {run}` removes the run")
