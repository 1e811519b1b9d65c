"""Makes the index anew from the run folders, which know all that it knew."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.core.plan import Plan
from runner.core.replay import Told, ToldStep, replay
from runner.core.state import STEP_ENDS, run_state
from runner.files import read_json
from runner.store.collect import collect_outputs
from runner.store.db import Store
from runner.store.folders import RunFolder
from runner.store.story import Story

_FOLDER = re.compile(r"\d{6,}")


@dataclass(frozen=True)
class Rebuilt:
    """The runs that the index knows again, and the folders that hold no whole run."""

    runs: tuple[int, ...]
    unreadable: tuple[Path, ...]


def is_broken(home: Path) -> str | None:
    """Why the index cannot be used; None when it can, or when there is none."""
    file = home / "state.db"
    if not file.exists():
        return None
    try:
        db = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
        try:
            said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            db.execute("SELECT count(*) FROM runs JOIN steps ON steps.run = runs.id").fetchone()
        finally:
            db.close()
    except sqlite3.Error as e:
        return str(e)
    return None if said == "ok" else str(said)


def set_aside(home: Path) -> Path:
    """Move the index out of the way; its new name."""
    aside = home / f"state.db.broken-{time.strftime('%Y%m%d-%H%M%S')}"
    for end in ("-wal", "-shm", ""):
        file = home / f"state.db{end}"
        if file.exists():
            file.rename(f"{aside}{end}")
    return aside


def rebuild(store: Store) -> Rebuilt:
    """Enter every run that has a folder and no row."""
    found, unreadable = [], []
    known = {r["id"] for r in store.rows("SELECT id FROM runs")}
    for path in sorted((store.home / "runs").glob("*")):
        if not _FOLDER.fullmatch(path.name) or int(path.name) in known:
            continue
        folder = RunFolder(path)
        try:
            plan = Plan.model_validate_json(folder.plan.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            unreadable.append(path)
            continue
        _enter(store, int(path.name), folder, plan)
        found.append(int(path.name))
    return Rebuilt(tuple(found), tuple(unreadable))


def _enter(store: Store, run: int, folder: RunFolder, plan: Plan) -> None:
    told = replay(Story(folder.events).events(), [s.name for s in plan.steps])
    attempts = {s.name: _attempts(folder, s.name, told.steps[s.name]) for s in plan.steps}
    rows = {s.name: _step_row(folder, plan, s.name, told.steps[s.name], attempts[s.name]) for s in plan.steps}
    with store.transaction() as db:
        _insert(db, "runs", _run_row(run, folder, plan, told, rows))
        for i, (name, row) in enumerate(rows.items()):
            _insert(db, "steps", {"run": run, "name": name, "idx": i, "kind": plan.step(name).kind, **row})
            for attempt in attempts[name]:
                _insert(db, "attempts", {"run": run, "step": name, **attempt})
                if attempt["state"] != "ENDED":
                    _lease(db, run, name, json.loads(attempt["placed"]))


def _run_row(
    run: int, folder: RunFolder, plan: Plan, told: Told, steps: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    said = told.submitted
    states = [s["state"] for s in steps.values()]
    over = all(s in STEP_ENDS for s in states)
    stopped = any(s.intent == "user" for s in told.steps.values())
    return {
        "id": run,
        "name": plan.name,
        "file": said.get("file") or str(folder.spec),
        "state": run_state(states),
        "created": told.created or folder.path.stat().st_mtime,
        "ended": (told.ended or time.time()) if over else None,
        "stop": int(stopped and not over),
        "priority": said.get("priority") or 0,
        "grp": said.get("group"),
        "point": json.dumps(said.get("point") or {}, ensure_ascii=False),
        "resume": int(told.resume),
        "reopened": told.reopened,
    }


def _attempts(folder: RunFolder, step: str, told: ToldStep) -> list[dict[str, Any]]:
    """The rows of a step's attempts; the last one is open when nothing was told of its end."""
    rows = []
    numbers = sorted(int(p.name) for p in (folder.step(step) / "attempts").glob("*") if p.name.isdecimal())
    for n in numbers:
        here = folder.attempt(step, n)
        record, started = read_json(here / "attempt.json"), read_json(here / "started.json")
        end = read_json(here / "exit.json") or {}
        if record is None:
            continue
        is_open = n == numbers[-1] and told.state not in {*STEP_ENDS, "BACKOFF"}
        intent = told.intent if n == told.attempt else None
        alive = "STOPPING" if intent else "RUNNING" if started else "STARTING"
        rows.append({
            "n": n,
            "state": alive if is_open else "ENDED",
            "intent": intent,
            **({} if is_open else {k: end.get(k) for k in ("reason", "message", "code", "signal", "ended")}),
            "placed": json.dumps(record.get("placed") or {"ports": {}, "devices": []}),
            "started": (started or {}).get("time") or here.stat().st_mtime,
        })  # fmt: skip
    return rows


def _step_row(
    folder: RunFolder, plan: Plan, step: str, told: ToldStep, attempts: list[dict[str, Any]]
) -> dict[str, Any]:
    planned, last = plan.step(step), attempts[-1] if attempts else None
    state = "ACTIVE" if last and last["state"] != "ENDED" else told.state
    state = "WAITING" if state in ("ACTIVE", "QUEUED") and last is None else state
    over = last is not None and last["state"] == "ENDED"
    outputs = collect_outputs(planned, folder, {}) if over and not planned.service else {}
    return {
        "state": state,
        "reason": told.reason,
        "message": told.message,
        "code": told.code,
        "signal": last.get("signal") if last else None,
        "outputs": json.dumps(outputs, ensure_ascii=False),
        "started": attempts[told.base]["started"] if len(attempts) > told.base else None,
        "ended": told.ended,
        "retry_at": time.time() if state == "BACKOFF" else None,
        "base": told.base,
    }


def _lease(db: sqlite3.Connection, run: int, step: str, placed: dict[str, Any]) -> None:
    held = [f"port:{p}" for p in placed["ports"].values()] + [f"npu:{d}" for d in placed["devices"]]
    token = db.execute("UPDATE tokens SET next = next + 1 RETURNING next").fetchone()[0]
    db.executemany("INSERT OR IGNORE INTO leases VALUES (?, ?, ?, ?)", [(r, token, run, step) for r in held])


def _insert(db: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    marks = ", ".join("?" * len(row))
    db.execute(f"INSERT INTO {table}({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
