"""Whatever bytes come as a spec, a person gets findings in bounded time, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from runner.core.expr import evaluate, unknown_name
from runner.core.validate import apply_sets, in_order, missing_params, params_findings, validate
from runner.core.yamltext import finding_json, format_finding, read_yaml
from runner.errors import SpecError, UsageError

VALID = """\
name: qwen3-lora
resources: {npus: 1}
params: {model: Qwen/Qwen3-0.6B, rank: 8, token: null}
env: {TASK_QUEUE_ENABLE: "1"}
mounts: [{source: ~/.cache/modelscope, target: /mnt/cache}]
timeout: 12h
steps:
  - name: train
    kind: sft
    args: &args {model: "${{ params.model }}", dataset: ["${{ params.model }}#1000"], learning_rate: 1e-4}
  - name: merge
    kind: merge
    args:
      adapters: "${{ steps.train.checkpoint }}"
      rank: "${{ params.rank }}"
  - {name: say, kind: command, command: [echo, "$${{ no }}", '模型'], needs: [train]}
  - name: text
    kind: command
    script: |
      echo ${{ params.rank }}
"""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Resources(_Strict):
    npus: int = Field(default=0, ge=0, le=64)


class _Mount(_Strict):
    source: str
    target: str = Field(pattern="^/")


class _Swift(_Strict):
    kind: Literal["sft", "merge"]
    name: str
    args: dict[str, Any] = Field(default_factory=dict)
    resources: _Resources | None = None


class _Command(_Strict):
    kind: Literal["command"]
    name: str
    command: list[str] = Field(default_factory=list)
    script: str | int | None = None
    needs: list[str] = Field(default_factory=list)


class _Job(_Strict):
    name: str = Field(pattern="^[a-z0-9.-]+$")
    resources: _Resources = _Resources()
    params: dict[str, Any] = Field(default_factory=dict)
    env: dict[Annotated[str, Field(pattern="^[A-Z_]+$")], str | int | bool] = Field(default_factory=dict)
    mounts: list[_Mount] = Field(default_factory=list)
    timeout: str | int | None = None
    steps: list[Annotated[_Swift | _Command, Field(discriminator="kind")]] = Field(min_length=1)


def _late(path: tuple[str, ...]) -> str | None:
    return None if path[0] in ("steps", "run") else unknown_name(path[:1], ["params", "env", "steps", "run"])


def _read_small_job(raw: bytes) -> object:
    doc = read_yaml(raw, "job.yaml")
    given_params = doc.value.get("params")
    params = apply_sets(given_params if isinstance(given_params, dict) else {}, [])
    value, found = evaluate(doc, doc.value, (), {"params": params, "env": {}}, _late)
    job, wrong = validate(doc, _Job, value)
    found = in_order([*params_findings(doc), *found, *missing_params(doc, params), *wrong])
    if found or job is None:
        raise SpecError(found)
    return job


# a reader of specs that is added here is held to the same promise
READERS: list[Callable[[bytes], object]] = [_read_small_job]


def hold(raw: bytes) -> None:
    """Each reader takes the bytes, or says with findings that can be printed what is wrong with them."""
    for read in READERS:
        try:
            read(raw)
        except UsageError as problem:
            assert problem.message
        except SpecError as problem:
            assert problem.findings
            for found in problem.findings:
                assert found.message.isprintable(), found
                assert found.file == "job.yaml"
                assert format_finding(found).startswith("job.yaml:")
                json.dumps(finding_json(found))
                rows = found.excerpt.split("\n") if found.excerpt else []
                assert not rows or set(rows[-1].split("|")[1]) <= {" ", "^"}


def fuzz(examples: int) -> Any:
    # generous: a busy machine may stall, an endless loop or an expansion bomb would not end at all
    limit = timedelta(seconds=10)
    slow = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]
    return settings(
        max_examples=examples, deadline=limit, derandomize=True, database=None, suppress_health_check=slow
    )


_MARKS = st.sampled_from("\n\r\t -:?[]{},&*!|>'\"#%@`~0a模\u2028\x85\ufeff")
_PHRASES = st.sampled_from(
    [": ", "- ", "&a ", "*a", "<<: ", "!!x ", "%YAML 1.1\n", "---\n", "kind: ", "steps:\n", "name: ", "1e999"]
)
_EXPRESSIONS = st.sampled_from(["${{ ", "}}", "$${{", "${{ params.model }}", "${{ steps.a.b }}"])
_PIECES = _MARKS | _PHRASES | _EXPRESSIONS
_KEYS = st.sampled_from(
    [
        "name",
        "steps",
        "kind",
        "args",
        "params",
        "env",
        "resources",
        "npus",
        "npu",
        "command",
        "needs",
        "mounts",
    ]
) | st.text(max_size=6)
_TEXTS = st.sampled_from(
    ["sft", "sftt", "command", "${{ params.model }}", "x ${{ params.a }}", "${{ steps.a.b }}", "${{", "train"]
) | st.text(max_size=12)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS
_VALUES = st.recursive(
    _SCALARS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(_KEYS, below, max_size=4),
    max_leaves=20,
)
_STEPS = st.lists(
    st.fixed_dictionaries(
        {}, optional={"kind": _TEXTS, "name": _SCALARS, "args": _VALUES, "command": _VALUES, "needs": _VALUES}
    ),
    max_size=3,
)
_JOBS = st.fixed_dictionaries(
    {},
    optional={
        "name": _SCALARS,
        "params": _VALUES,
        "env": _VALUES,
        "resources": _VALUES,
        "mounts": _VALUES,
        "steps": _STEPS | _VALUES,
        "nmae": _VALUES,
    },
)
_EDITS = st.lists(
    st.tuples(
        st.sampled_from(["cut", "put", "copy", "indent", "drop line"]),
        st.integers(0, len(VALID)),
        st.integers(1, 40),
        _PIECES,
    ),
    min_size=1,
    max_size=6,
)


def _edited(text: str, edits: list[tuple[str, int, int, str]]) -> str:
    for what, at, length, piece in edits:
        match what:
            case "cut":
                text = text[:at] + text[at + length :]
            case "put":
                text = text[:at] + piece + text[at:]
            case "copy":
                text = text[:at] + text[at : at + length] + text[at:]
            case _:
                rows = text.split("\n")
                row = at % len(rows)
                rows[row : row + 1] = [" " * (length % 5) + rows[row]] if what == "indent" else []
                text = "\n".join(rows)
    return text


def test_the_text_that_is_mutated_is_valid_but_for_nothing() -> None:
    for read in READERS:
        read(VALID.encode())


@fuzz(1000)
@given(st.binary(max_size=400))
def test_any_bytes(raw: bytes) -> None:
    hold(raw)


@fuzz(2000)
@given(st.lists(_PIECES, max_size=60).map("".join))
def test_any_heap_of_yaml_pieces(text: str) -> None:
    hold(text.encode("utf-8", errors="surrogatepass"))


@fuzz(2400)
@given(_EDITS)
def test_a_valid_job_with_edits(edits: list[tuple[str, int, int, str]]) -> None:
    hold(_edited(VALID, edits).encode())


@fuzz(800)
@given(_EDITS, st.binary(min_size=1, max_size=3), st.integers(0, len(VALID)))
def test_a_valid_job_with_damaged_bytes(
    edits: list[tuple[str, int, int, str]], damage: bytes, at: int
) -> None:
    raw = _edited(VALID, edits[:1]).encode()
    hold(raw[:at] + damage + raw[at:])


@fuzz(1000)
@given(_JOBS, st.booleans())
def test_any_shape_of_job(job: dict[str, Any], flow: bool) -> None:
    hold(yaml.safe_dump(job, allow_unicode=True, default_flow_style=flow, sort_keys=False).encode())


@fuzz(600)
@given(st.lists(st.text(max_size=20) | _PIECES.map("rank=".__add__), max_size=3))
def test_any_set(sets: list[str]) -> None:
    try:
        apply_sets({"rank": 8, "model": None, "opts": {"k": [1]}}, sets)
    except UsageError as problem:
        assert problem.message.isprintable()


@pytest.mark.parametrize("char", ["[", "{", "- ", "? ", "a: {", "&a [", "${{ ", "'", "|\n ", "a:\n "])
def test_a_lot_of_one_thing(char: str) -> None:
    hold((char * (900_000 // len(char))).encode())
    hold(f"name: x\nsteps: {char * 50_000}\n".encode())
