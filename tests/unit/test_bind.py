"""A planned step at its place."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import plan_of
from runner.core.bind import Environment, Placement, bind
from runner.core.expr import ExpressionError
from runner.core.shelltext import shell_text

CHAIN = """
name: j
steps:
  - {name: train, kind: sft, args: {model: a/b}, resources: {npus: 2, ports: 2}}
  - {name: use, kind: command, command: [cat, "${{ steps.train.checkpoint }}/x"]}
"""
PLACE = Placement(
    attempt="h.1.train.1", run={"id": "1", "name": "j", "dir": "/r", "inside": "/in"}, step_dir="/r/s",
    output="/r/s/output", cwd="/r/snap", ports={"master": 29501, "extra0": 1, "extra1": 2}, devices=(3, 5),
)  # fmt: skip


def test_every_reference_is_answered() -> None:
    record = bind(
        plan_of(CHAIN).steps[0], PLACE, Environment(env={"A": "1"}, path_prepend=("/v/bin",))
    ).record
    assert record["env"] == {
        "A": "1", "ASCEND_RT_VISIBLE_DEVICES": "3,5", "NPROC_PER_NODE": "2", "MASTER_PORT": "29501",
        "RUNNER_PORTS": "1,2",
    }  # fmt: skip
    argv = record["commands"][0]["argv"]
    assert argv[argv.index("--output_dir") + 1] == "/r/s/output"
    assert "${{" not in json.dumps(record)


def test_resume_is_added_to_the_training_alone() -> None:
    place = PLACE.model_copy(update={"resume_from": "/r/checkpoint-4"})
    argv = bind(plan_of(CHAIN).steps[0], place, Environment()).record["commands"][0]["argv"]
    assert argv[-2:] == ["--resume_from_checkpoint", "/r/checkpoint-4"]


def test_a_missing_output_is_named() -> None:
    with pytest.raises(ExpressionError, match=r"steps\.train\.checkpoint"):
        bind(plan_of(CHAIN).steps[1], PLACE, Environment())


@given(st.text(min_size=1).filter(lambda s: "\0" not in s and "${{" not in s))
def test_values_in_json_files_stay_json(value: str) -> None:
    text = """
name: j
steps:
  - {name: s, kind: serve, args: {model: a/b}}
  - {name: q, kind: probe, target: s, request: {messages: ["${{ steps.s.endpoint }}"]}}
"""
    place = PLACE.model_copy(update={"outputs": {"s": {"endpoint": value}}})
    request = bind(plan_of(text).steps[1], place, Environment()).files["request.json"]
    assert json.loads(request)["body"]["messages"] == [value]


def test_plan_text_runs_in_a_real_shell(tmp_path: Path) -> None:
    nasty = """a b'c"d$HOME`id`\\x 中文"""
    job = f"""
name: j
steps:
  - name: make
    kind: command
    env: {{NASTY: {json.dumps(nasty, ensure_ascii=False)}}}
    script: |
      printf %s "$NASTY" > "$RUNNER_OUTPUT/out"
  - name: use
    kind: command
    command: [cp, "${{{{ steps.make.output_dir }}}}/out", "${{{{ run.dir }}}}/copied"]
  - {{name: say, kind: command, command: [printf, "%s", {json.dumps(nasty, ensure_ascii=False)}]}}
"""
    script = shell_text(plan_of(job))
    done = subprocess.run(
        ["bash", "-eu"], input=script, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == nasty
    assert (tmp_path / "runs" / "j" / "copied").read_text() == nasty
