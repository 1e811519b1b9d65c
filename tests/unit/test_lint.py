"""ms-swift's flags, checked: what a person sees for a wrong one, and silence for a right one."""

from __future__ import annotations

import pytest

from runner.core.lint import ArgProblem, ArgTable, check_args
from runner.core.plan import argv_of
from runner.data.load import swift_arg_table

OLD = ArgTable.of(swift_arg_table("4.3.2", "4.57.6", "0.29.1"))
NEW = ArgTable.of(swift_arg_table("4.6.0", "5.19.0", "0.29.1"))


def only(command: str, args: dict[str, object], table: ArgTable = OLD) -> ArgProblem:
    (problem,) = check_args(command, args, [], table)
    return problem


def extra(*tokens: object, command: str = "sft", table: ArgTable = OLD) -> list[tuple[int | None, str]]:
    return [(p.index, p.message) for p in check_args(command, {}, tokens, table)]


def test_a_typing_slip_gets_the_right_name() -> None:
    assert only("sft", {"lora_rnk": 8}) == ArgProblem(
        name="lora_rnk",
        code="unknown-arg",
        message="ms-swift 4.3 has no argument 'lora_rnk' for sft - did you mean 'lora_rank'?",
    )


@pytest.mark.parametrize("command", list(NEW.commands))
def test_every_command_knows_its_own(command: str) -> None:
    assert check_args(command, {"model": "m", "torch_dtype": "bfloat16", "max_length": 2048}, [], NEW) == []
    assert [p.code for p in check_args(command, {"mdoel": "m"}, [], NEW)] == ["unknown-arg"]


def test_right_flags_in_all_their_forms_are_quiet() -> None:
    args: dict[str, object] = {
        "dataset": ["a.jsonl", "b.jsonl#10"],
        "target_modules": "all-linear",
        "learning_rate": 1e-4,
        "num_train_epochs": 1,
        "gradient_checkpointing": False,
        "bf16": True,
        "model_kwargs": {"fps_max_frames": 12},
        "lora_dtype": None,
        "nothing_at_all": None,
        "system": "- be short",
        "seed": "7",
    }
    assert check_args("sft", args, ["--packing", "--seed=7", "--no_add_version"], OLD) == []


@pytest.mark.parametrize(
    ("name", "does_instead"), [("use_npu", "by itself"), ("npu_precision", "torch_dtype: bfloat16")]
)
def test_the_articles_flags_are_explained(name: str, does_instead: str) -> None:
    problem = only("sft", {name: True})
    assert problem.message.startswith(f"ms-swift 4.3 has no argument '{name}' for sft: ms-swift has no")
    assert does_instead in (problem.hint or "")
    (index, message), *_ = extra(f"--{name}")
    assert (index, message) == (0, problem.message)


def test_a_renamed_flag_is_explained() -> None:
    assert only("sft", {"train_type": "lora"}).hint == "write `tuner_type`, with the same value"


def test_an_argument_of_another_command_is_said_to_be_one() -> None:
    problem = only("pt", {"result_path": "x"})
    assert problem.message == "ms-swift 4.3 has no argument 'result_path' for pt"
    assert problem.hint == "'result_path' is an argument of infer, deploy, rollout, eval, app, not of pt"


def test_an_argument_of_another_version_is_said_to_be_one() -> None:
    problem = only("sft", {"enable_jit_checkpoint": True})
    assert problem.message.endswith("for sft; ms-swift 4.5 with transformers 5.5.4 has it")
    assert check_args("sft", {"enable_jit_checkpoint": True}, [], NEW) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"lora_rank": "abc"}, "'lora_rank' must be a whole number, got 'abc'"),
        ({"lora_rank": True}, "'lora_rank' must be a whole number, got true"),
        ({"lora_rank": {"a": 1}}, "'lora_rank' must be a whole number, got a mapping"),
        ({"max_length": 1e3}, "'max_length' must be a whole number, got 1000.0"),
        ({"learning_rate": "fast"}, "'learning_rate' must be a number, got 'fast'"),
        ({"packing": "maybe"}, "'packing' must be true or false, got 'maybe'"),
        ({"model": ["a", "b"]}, "'model' takes one value, got 2"),
        ({"dataset": []}, "'dataset' needs a value"),
        (
            {"liger_kernel_config": {"a": True}},
            "'liger_kernel_config' cannot be given to an ms-swift command: no text becomes a dict",
        ),
        ({"interleave_prob": [0.5, "half"]}, "'interleave_prob' must be a number, got 'half'"),
        ({"system": "--"}, "'system' must be a value (the parser drops a lone '--'), got '--'"),
        (
            {"dataset": ["a", "-b"]},
            "'dataset' cannot have '-b' among several values: ms-swift reads it as a flag",
        ),
    ],
)
def test_a_value_the_parser_would_refuse(args: dict[str, object], message: str) -> None:
    problem = only("sft", args)
    assert (problem.code, problem.message) == ("bad-type", message)


@pytest.mark.parametrize(
    ("args", "argv"),
    [
        ({"learning_rate": -1e-5}, ["--learning_rate=-1e-05"]),
        ({"seed": -1, "max_length": 8}, ["--seed=-1", "--max_length", "8"]),
        ({"system": "--lora_rank"}, ["--system=--lora_rank"]),
        ({"dataset": ["-x"]}, ["--dataset=-x"]),
        ({"interleave_prob": [0.5, -1]}, ["--interleave_prob", "0.5", "-1"]),
    ],
)
def test_a_value_that_starts_with_a_dash_is_joined(args: dict[str, object], argv: list[str]) -> None:
    assert argv_of(args) == argv
    assert check_args("sft", args, [], OLD) == check_args("sft", {}, argv, OLD) == []


def test_a_wrong_choice_lists_the_right_ones() -> None:
    problem = only("rlhf", {"rlhf_type": "dpoo"})
    assert problem.code == "bad-choice"
    assert problem.message == (
        "'rlhf_type' must be one of dpo, orpo, simpo, kto, cpo, rm, ppo, grpo, gkd, got 'dpoo'"
        " - did you mean 'dpo'?"
    )
    many = only("sft", {"optim": "adam"})
    assert many.message == "'optim' must be one of its 42 choices, got 'adam'"
    assert (many.hint or "").startswith("choices: adamw_torch, adamw_torch_fused, ")
    assert check_args("sft", {"quant_bits": 4, "optim": "adafactor"}, [], OLD) == []


def test_a_value_that_is_not_known_yet_is_not_checked() -> None:
    late = {"lora_rank": "${{ params.rank }}", "adapters": ["${{ steps.train.checkpoint }}"]}
    assert (
        check_args("sft", late, ["--seed", "${{ params.seed }}", "--max_length=${{ params.n }}"], OLD) == []
    )


def test_short_forms_and_dashes_are_written_out() -> None:
    assert only("sft", {"lora_ran": 8}).message.endswith("did you mean 'lora_rank'?")
    assert (only("sft", {"per_device": 1}).hint or "").startswith(
        "arguments that start so: per_device_eval_batch_size"
    )
    assert only("sft", {"output-dir": "x"}).hint == "write 'output_dir'"
    assert only("sft", {"no_add_version": True}).hint == "write 'add_version: false'"


def test_extra_args_are_read_as_the_parser_reads_them() -> None:
    assert extra("--lora_rank", "8", "--dataset", "a", "b", "--seed", "-1", "--packing") == []
    assert extra("--lora_rnk", "8", "9") == [
        (0, "ms-swift 4.3 has no argument 'lora_rnk' for sft - did you mean 'lora_rank'?")
    ]
    assert extra("--seed", "x") == [(1, "'seed' must be a whole number, got 'x'")]
    assert extra("--seed=x") == [(0, "'seed' must be a whole number, got 'x'")]
    assert extra("--seed", 1, 2) == [(2, "'seed' takes one value; '2' belongs to no flag")]
    assert extra("--no_add_version", "true") == [
        (1, "'add_version' takes no value; 'true' belongs to no flag")
    ]
    assert extra("--lazy_tokenize") == [(0, "'lazy_tokenize' needs a value")]
    assert extra("config.yaml") == [(0, "'config.yaml' belongs to no flag")]
    assert extra("-seed", "1") == [(0, "ms-swift has no flag '-seed'")]
    assert extra("--seed", "1", "--", "x") == [(2, "ms-swift has no flag '--'")]


def test_where_ms_swift_goes_on_it_is_a_warning() -> None:
    found = check_args("sft", {"lora_rnk": 8, "ignore_args_error": True, "seed": "x"}, [], OLD)
    assert [(p.name, p.severity) for p in found] == [("lora_rnk", "warning"), ("seed", "error")]


def test_a_table_of_another_version_only_warns() -> None:
    far = ArgTable.of(swift_arg_table("4.9.0"))
    problem = only("sft", {"lora_rnk": 8}, far)
    assert problem.severity == "warning"
    assert problem.message.startswith("ms-swift 4.9 has no argument 'lora_rnk'")


def test_a_command_without_a_table_is_not_checked() -> None:
    assert check_args("sample", {"x": 1}, ["--y"], OLD) == []
