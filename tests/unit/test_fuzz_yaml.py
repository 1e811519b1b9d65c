"""Whatever bytes come as a spec, a person gets findings in bounded time, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.cli.jobfile import arg_table
from runner.core.bind import Environment, Placement, bind
from runner.core.compile import compile_plan
from runner.core.job import read_job
from runner.core.jobcheck import check_job
from runner.core.params import apply_sets
from runner.core.shelltext import shell_text
from runner.core.yamltext import finding_json, format_finding
from runner.data.stacks import load_stack
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
      max_length: "${{ params.rank }}"
  - {name: say, kind: command, command: [echo, "$${{ no }}", '模型'], needs: [train]}
  - name: text
    kind: command
    script: |
      echo ${{ params.rank }}
"""


STACK = load_stack("swift-4.3-cann9.0")
TABLE = arg_table(STACK)


def read_and_compile(raw: bytes) -> None:
    """All that `runner plan` does with a file, and what binds it at the end."""
    job = read_job(raw, "job.yaml")
    findings = check_job(job, STACK, TABLE)
    if any(f.severity == "error" for f in findings):
        raise SpecError(findings)
    plan = compile_plan(job, STACK, {})
    shell_text(plan)
    for step in plan.steps:
        bind(step, PLACE, Environment())


OUTPUTS = dict.fromkeys(("checkpoint", "output_dir", "model"), "v")
PLACE = Placement(
    attempt="a",
    run={"id": "1", "name": "n", "dir": "/r", "inside": "/i"},
    step_dir="/s",
    output="/o",
    cwd="/",
    ports={"http": 1, "master": 2} | {f"extra{i}": i for i in range(64)},
    outputs=dict.fromkeys(("train", "merge", "say", "text"), OUTPUTS),
)
READERS: list[Callable[[bytes], object]] = [read_and_compile]


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
