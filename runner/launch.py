"""From a QUEUED step to a living attempt: take what it needs, write down what it is, start it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from runner.backends.base import Backend
from runner.core.bind import Placement, bind
from runner.core.plan import Plan, PlannedStep
from runner.errors import UnreachableError
from runner.files import INSIDE, write_atomic
from runner.store.collect import resume_point
from runner.store.db import AttemptRow, Run, Step, Store
from runner.store.memory import hand_over, held_environ

Placed = dict[str, object]


def attempt_folder(store: Store, attempt: AttemptRow) -> Path:
    """Where an attempt's records and log are."""
    return store.folder(attempt.run).attempt(attempt.step, attempt.n)


def attempt_key(store: Store, attempt: AttemptRow) -> str:
    """The attempt's name in its processes' environment: unique on this host over all homes."""
    home = hashlib.sha256(os.fsencode(store.home.absolute())).hexdigest()[:8]
    return f"{home}.{attempt.key}"


def lease(store: Store, backend: Backend, step: Step, planned: PlannedStep) -> Placed | str:
    """Ports and devices for one attempt, all or none; else why not."""
    # an agent may have died between the lease and the attempt: what this step holds already is free for it
    leases = {k: who for k, who in store.leases().items() if who != (step.run, step.name)}
    taken = {int(r.split(":")[1]) for r in leases if r.startswith("port:")}
    wanted = {**planned.ports, **{f"extra{i}": None for i in range(planned.extra_ports)}}
    ports: dict[str, int] = {}
    for name, number in wanted.items():
        port = backend.free_port(taken | set(ports.values()), number)
        if port is None:
            return f"port {number} is in use" if number else "no TCP port is free"
        ports[name] = port
    free = [d for d in backend.devices() if f"npu:{d}" not in leases] if planned.npus else []
    if len(free) < planned.npus:
        holders = sorted({f"run {r}" for k, (r, _) in leases.items() if k.startswith("npu:")})
        by = f"; {', '.join(holders)} hold the others" if holders else ""
        return f"needs {planned.npus} NPU device(s), {len(free)} are free{by}"
    devices = free[: planned.npus]
    names = [f"port:{p}" for p in ports.values()] + [f"npu:{d}" for d in devices]
    if names and not store.lease(step.run, step.name, names):
        return "another run took a port or device at the same moment"
    return {"ports": ports, "devices": devices}


def launch(store: Store, backend: Backend, plan: Plan, attempt: AttemptRow) -> None:
    """Write attempt.json and start `entry` on it; RunnerError when it cannot be started."""
    run, planned = store.run(attempt.run), plan.step(attempt.step)
    here = attempt_folder(store, attempt)
    here.mkdir(parents=True, exist_ok=True)
    place = _place(store, run, planned, attempt, here)
    around = backend.environment(plan)
    bound = bind(planned, place, around, hand_over(store.home, run.id, planned, here))
    for name, text in bound.files.items():  # after a power loss the attempt is LOST, whatever they say
        write_atomic(here / name, text, durable=False)
    record = {**bound.record, "placed": dict(attempt.placed)}
    write_atomic(
        here / "attempt.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n", durable=False
    )
    environ = held_environ(store.home, run.id) or backend.inherited(os.environ)
    # so that a command that `entry` is just forking is found too when `entry` is killed
    pid = backend.launch(here, {**environ, "ASCEND_RUNNER_ATTEMPT": place.attempt})
    with contextlib.suppress(UnreachableError):  # a full disk; `entry` lives, and says so itself
        write_atomic(here / "launched.json", json.dumps({"pid": pid}) + "\n", durable=False)


def _write_log(log: Path, lines: Sequence[str]) -> None:
    with log.open("a", encoding="utf-8") as f:
        f.writelines(f"[runner] {line}\n" for line in lines)


def _place(store: Store, run: Run, planned: PlannedStep, attempt: AttemptRow, here: Path) -> Placement:
    folder = store.folder(run.id)
    output = folder.output(planned.name)
    resume = None
    if attempt.n > 1 and planned.resumable and (planned.resume or run.resume):
        resume, said = resume_point(planned, output)
        _write_log(here / "log.txt", said)
    before = folder.attempt(planned.name, attempt.n - 1) / "output"
    if attempt.n > 1 and resume is None and output.exists() and not before.exists():  # once
        output.rename(before)
    output.mkdir(parents=True, exist_ok=True)
    return Placement(
        attempt=attempt_key(store, attempt),
        run={"id": str(run.id), "name": run.name, "dir": str(folder.path), "inside": str(INSIDE)},
        step_dir=str(here),
        output=str(output),
        cwd=str(folder.snapshot if folder.snapshot.is_dir() else Path(run.file).parent),
        ports=attempt.placed["ports"],
        devices=tuple(attempt.placed["devices"]),
        outputs={s.name: dict(s.outputs) for s in store.steps(run.id)},
        resume_from=resume,
    )
