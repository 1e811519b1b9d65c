"""The metrics of a training, from the lines that ms-swift writes into logging.jsonl."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence

Row = dict[str, float]  # metric -> value; `step` is always there, `max_steps` where the line says it
_STEPS = ("global_step/max_steps", "iteration", "global_step", "step")  # Megatron says iteration, we say step
_OF = re.compile(r"([0-9]{1,15})/(-?[0-9]{1,15})")
_LARGEST = 10**15


def read_rows(lines: Iterable[str]) -> list[Row]:
    """The numbers of every line that knows its step, as written; a torn or odd line is left out."""
    return [row for line in lines if (row := _row(line)) is not None]


def series(rows: Iterable[Row]) -> list[Row]:
    """Each step once, in order: training and evaluation of a step are one row, and the last word counts.

    A row of an earlier step than the one before is from a training that was begun again there: what had
    come after it is forgotten.
    """
    steps: list[Row] = []
    for row in rows:
        if steps and row["step"] == steps[-1]["step"]:
            steps[-1] = {**steps[-1], **row}
            continue
        while steps and row["step"] <= steps[-1]["step"]:
            steps.pop()
        steps.append(row)
    return steps


def final(rows: Sequence[Row]) -> Row:
    """The last value of each metric, and the lowest eval_loss with its step."""
    last: Row = {}
    for row in rows:
        last.update(row)
    judged = [
        (row["eval_loss"], row["step"]) for row in rows if math.isfinite(row.get("eval_loss", math.nan))
    ]
    if judged:
        last["best_eval_loss"], last["best_eval_step"] = min(judged)
    return last


def row_text(row: Row) -> str:
    """One line of a metrics file; `read_rows` reads it back."""
    return json.dumps(row)


def _row(line: str) -> Row | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    progress = next((p for name in _STEPS if (p := _progress(said.get(name)))), None)
    if progress is None:
        return None
    numbers = {name: value for name, value in said.items() if _is_number(value) and name not in _STEPS}
    return {**progress, **numbers}


def _progress(value: object) -> Row | None:
    """The step, and the number of steps if it is said too."""
    if isinstance(value, str) and (m := _OF.fullmatch(value)):
        return {"step": int(m[1]), **({"max_steps": int(m[2])} if int(m[2]) > 0 else {})}
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
        return {"step": value}
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    )
