"""The metrics of a run's trainings: read while they run, kept when an attempt has ended."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from runner.core.inputs import first_of, flags_of
from runner.core.metrics import Row, final, read_rows, row_text, series
from runner.core.plan import PlannedStep
from runner.errors import UnreachableError
from runner.files import read_json, write_atomic
from runner.store.db import Store
from runner.store.folders import RunFolder
from runner.store.rows import Step

TRAININGS = ("pt", "sft", "rlhf", "megatron-pt", "megatron-sft", "megatron-rlhf")


def run_metrics(store: Store, run: int) -> dict[str, list[Row]]:
    """The metrics of each training of a run that has some, in the order of its steps."""
    folder = store.folder(run)
    found = {s.name: read_metrics(folder, s) for s in store.steps(run)}
    return {name: rows for name, rows in found.items() if rows}


def final_metrics(store: Store, run: int) -> Row:
    """The final values of the last training of a run that has metrics; nothing when none has."""
    return next((final(rows) for rows in reversed(run_metrics(store, run).values())), {})


def read_metrics(folder: RunFolder, step: Step) -> list[Row]:
    """The metrics of a step as far as it has come; nothing when it is no training."""
    if step.kind not in TRAININGS or step.started is None:
        return []
    kept = _read(_kept(folder, step.name))
    if step.ended and kept:
        return series(kept)  # another run may have written where this one did
    return series([*kept, *_written(folder, step.name, step.outputs)])


def keep_metrics(folder: RunFolder, planned: PlannedStep, outputs: Mapping[str, str]) -> None:
    """Keep what an attempt has logged, beside its output, which the next attempt may replace."""
    if planned.kind not in TRAININGS:
        return
    written = _written(folder, planned.name, outputs)
    if written:
        kept = _kept(folder, planned.name)
        rows = series([*_read(kept), *written])
        with contextlib.suppress(UnreachableError):  # on a full disk the log itself is still there
            write_atomic(kept, "".join(f"{row_text(row)}\n" for row in rows), durable=False)


def _kept(folder: RunFolder, step: str) -> Path:
    return folder.step(step) / "metrics.jsonl"


def _written(folder: RunFolder, step: str, outputs: Mapping[str, str]) -> list[Row]:
    """The log of a step, unless it is older than the run: then another one wrote it."""
    path = Path(outputs["logging"]) if "logging" in outputs else metrics_log(folder, step)
    with contextlib.suppress(OSError, ValueError):  # ValueError: no file can have this name
        if path.stat().st_mtime >= folder.plan.stat().st_mtime:
            return _read(path)
    return []


def metrics_log(folder: RunFolder, step: str) -> Path:
    """Where the newest attempt logs, by its own command; before one has ended no output says so."""
    numbers = [int(p.name) for p in (folder.step(step) / "attempts").glob("*") if p.name.isdecimal()]
    attempt = read_json(folder.attempt(step, max(numbers, default=1)) / "attempt.json") or {}
    commands = attempt.get("commands")
    argv = commands[0]["argv"] if commands else []
    output = first_of(flags_of(argv), "output_dir")
    where = Path(attempt["cwd"]) / output if output else folder.output(step)
    return where / "logging.jsonl"


def _read(path: Path) -> list[Row]:
    with contextlib.suppress(OSError, ValueError):
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace", newline="\n") as f:
                return read_rows(f)
    return []
