"""A job's matrix: one run for each combination of values for some of its params."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from runner.core.document import Document, finding
from runner.core.params import expressions_in, fits
from runner.core.wording import did_you_mean, shown
from runner.errors import Finding

MOST_RUNS = 1000
Point = Mapping[str, object]


def points(doc: Document, pinned: frozenset[str] = frozenset()) -> list[Point]:
    """The combinations in the order written, the last param changing first; one empty point without a matrix.

    Params that `--set` has pinned are left out.
    """
    matrix = doc.value.get("matrix")
    if not isinstance(matrix, dict) or matrix_findings(doc):
        return [{}]
    names = [n for n in matrix if n not in pinned]
    return [dict(zip(names, values, strict=True)) for values in product(*(matrix[n] for n in names))]


def matrix_findings(doc: Document) -> list[Finding]:
    """What is wrong with the matrix: it gives lists of values to params that the job has."""
    matrix = doc.value.get("matrix")
    if not isinstance(matrix, dict):
        return []  # validate says so
    params = doc.value.get("params")
    params = params if isinstance(params, dict) else {}
    found = []
    for name, values in matrix.items():
        if name not in params:
            hint = "a matrix gives values to params; add it under params, null when it has no default"
            message = f"the job has no param '{name}'{did_you_mean(name, params)}"
            found.append(finding(doc, ("matrix", name), "unknown-param", message, hint=hint, key=True))
        if not isinstance(values, list) or not values:
            message = f"must be a list of values, got {shown(values)}"
            found.append(finding(doc, ("matrix", name), "type", message))
            continue
        for i, value in enumerate(values):
            if name in params and not fits(params[name], value):
                message = f"{shown(value)} is not of the type of the param's default, {shown(params[name])}"
                found.append(finding(doc, ("matrix", name, i), "type", message))
    for path in expressions_in(matrix, ("matrix",)):
        message = "a matrix cannot hold an expression"
        found.append(finding(doc, path, "expression", message, hint="write $${{ for a literal ${{", at="${{"))
    runs = prod(len(v) for v in matrix.values() if isinstance(v, list))
    if runs > MOST_RUNS:
        message = f"makes {runs} runs; at most {MOST_RUNS} can be submitted at once"
        found.append(finding(doc, ("matrix",), "matrix", message, key=True))
    return found[:100]


def point_text(point: Point) -> str:
    """`lr=0.0001 seed=1`, for tables."""
    return " ".join(f"{name}={value}" for name, value in point.items())
