"""From a job file to all that is wrong with it, or to a checked spec."""

from __future__ import annotations

import pytest

from jobs import findings_of, job_of, said
from runner.errors import RunnerError

WRONG = """\
name: a job
stack: swift-4.3-cann9.0
resources: {npu: 4}
params: {lr: 1e-4}
steps:
  - name: train
    kind: sft
    args: {lora_rnk: 8, learning_rate: "${{ params.rate }}"}
    timeout: soon
  - name: merge
    kind: merge
    comands: x
    args: {adapters: "${{ steps.tran.checkpoint }}"}
"""


def test_everything_wrong_is_said_at_once_with_unknown_keys_first() -> None:
    messages = said(WRONG)
    assert messages[:2] == [
        "3:13: unknown key 'npu' - did you mean 'npus'?",
        "12:5: unknown key 'comands'",
    ]
    rest = "\n".join(messages[2:])
    for part in ("1:7: ", "params.rate", "timeout", "no step 'tran' - did you mean 'train'?"):
        assert part in rest


def test_swift_flags_are_checked_with_place_and_guess() -> None:
    text = "name: x\nkind: sft\nargs:\n  model: a/b\n  lora_rnk: 8\n"
    (found,) = findings_of(text)
    assert (found.line, found.col) == (5, 3)
    assert found.message == "ms-swift 4.3 has no argument 'lora_rnk' for sft - did you mean 'lora_rank'?"


@pytest.mark.parametrize("flag", ["use_npu: true", "npu_precision: apollo"])
def test_flags_of_the_article_are_explained(flag: str) -> None:
    (found,) = findings_of(f"name: x\nkind: sft\nargs:\n  model: a/b\n  {flag}\n")
    assert "ms-swift" in found.message
    assert found.hint


def test_single_step_form_is_the_same_step() -> None:
    one = job_of("name: x\nkind: command\ncommand: ['true']\n")
    assert one.spec.steps[0].kind == "command"
    assert one.single
    assert said("name: x\nkind: comand\n") == ["2:7: unknown kind 'comand' - did you mean 'command'?"]


def test_expressions_keep_their_type_and_text_takes_scalars() -> None:
    text = """
name: x
params: {rank: 8, on: true, ratio: 1e-2, list: [a, b]}
kind: sft
args:
  lora_rank: "${{ params.rank }}"
  packing: "${{ params.on }}"
  dataset: "${{ params.list }}"
  system: "r${{ params.rank }} ${{ params.on }} ${{ params.ratio }}"
"""
    args = job_of(text).spec.steps[0].args
    assert args["lora_rank"] == 8
    assert args["packing"] is True
    assert args["dataset"] == ["a", "b"]
    assert args["system"] == "r8 true 0.01"
    assert "list" in said(text.replace("r${{ params.rank }}", "${{ params.list }} x"))[0]


def test_yaml_is_1_2() -> None:
    text = "name: x\nkind: sft\nargs: {learning_rate: 1e-4, system: on, model: 1:30}\n"
    assert job_of(text).spec.steps[0].args == {"learning_rate": 1e-4, "system": "on", "model": "1:30"}


def test_set_is_typed_and_must_fit() -> None:
    text = "name: x\nparams: {n: 1, s: a}\nkind: command\ncommand: [echo, '${{ params.n }}']\n"
    assert job_of(text, "n=2", "s=3x").params == {"n": 2, "s": "3x"}
    for wrong in ("n=many", "m=1", "n"):
        with pytest.raises(RunnerError, match=wrong.split("=")[0]) as caught:
            job_of(text, wrong)
        assert caught.value.exit_code == 2


def test_null_param_must_be_given_wherever_it_stands() -> None:
    text = "name: x\nparams: {t: null}\nkind: command\ncommand: ['true']\ntimeout: '${{ params.t }}'\n"
    assert "'t' must be given" in said(text)[0]
    assert job_of(text, "t=5m").spec.timeout == 300


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("[{name: a, needs: [b]}, {name: b, needs: [a]}]", "circle"),
        ("[{name: a, needs: [a]}]", "needs itself"),
        ("[{name: a}, {name: a}]", "called 'a' already"),
        ("[{name: a, needs: [mrege]}, {name: merge}]", "no step 'mrege' - did you mean 'merge'?"),
    ],
)
def test_order(steps: str, message: str) -> None:
    steps = steps.replace("}", ", kind: command, command: ['true']}")
    assert message in said(f"name: x\nsteps: {steps}\n")[0]


def test_processes_and_devices_must_agree() -> None:
    text = "name: x\nresources: {npus: 4}\nenv: {NPROC_PER_NODE: 2}\nkind: sft\nargs: {model: a/b}\n"
    assert "one process per device (FAQ Q7)" in said(text)[0]
    by_hand = text.replace("NPROC_PER_NODE: 2", "ASCEND_RT_VISIBLE_DEVICES: '0,1'")
    assert "set by the runner" in said(by_hand)[0]


def test_unknown_output_names_those_that_are() -> None:
    text = """
name: x
steps:
  - {name: train, kind: sft, args: {model: a/b}}
  - {name: merge, kind: merge, args: {adapters: "${{ steps.train.chekpoint }}"}}
"""
    (found,) = findings_of(text)
    assert found.message == "step 'train' has no output 'chekpoint' - did you mean 'checkpoint'?"
    assert "best_checkpoint" in (found.hint or "")


def test_infer_needs_questions_and_merge_an_adapter() -> None:
    assert "needs 'prompts' or args.val_dataset" in said("name: x\nkind: infer\nargs: {model: a/b}\n")[0]
    assert "args.adapters" in said("name: x\nkind: merge\nargs: {model: a/b}\n")[0]
