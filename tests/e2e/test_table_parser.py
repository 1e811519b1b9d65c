"""The lint says of any flags what argparse, built from the same table, says of them."""

from __future__ import annotations

from argparse import ArgumentParser
from functools import cache

from hypothesis import example, given, settings
from hypothesis import strategies as st
from table_parser import complaint, parser_from

from runner.core.lint import ArgProblem, ArgTable, check_args
from runner.core.plan import argv_of
from runner.data.load import swift_arg_table

TABLE = ArgTable.of(swift_arg_table("4.6.0", "5.19.0", "0.29.1"))
NAMES = ["seed", "learning_rate", "packing", "lazy_tokenize", "dataset", "system", "torch_dtype"]
NAMES += ["quant_bits", "reft_layers", "debug", "parallelism_config", "model_kwargs", "add_version"]
TEXTS = ["a", "8", "-1", "-.5", "1.5", "true", "No", "None", "float16", "-x", "- a b", "--seed", "--seed=1 b"]
TEXTS += ["--", "-", "-h", "-1e-5", "--see", "--lora", "nan", "1_0", " 8", "underflow_overflow", "float8"]
FLAGS = [f"--{n}" for n in NAMES] + [
    "--no_add_version",
    "--seed=3",
    "--dataset=a",
    "--foo",
    "--system=-x",
    "--system=--",
]
VALUES = st.one_of(
    st.sampled_from(TEXTS), st.integers(-9, 9), st.floats(), st.booleans(), st.just({"a": 1}), st.none()
)


@cache
def parser(command: str) -> ArgumentParser:
    return parser_from(TABLE, command)


@settings(max_examples=300, deadline=None)
@given(
    command=st.sampled_from(["sft", "megatron sft"]),
    args=st.dictionaries(st.sampled_from([*NAMES, "foo"]), VALUES | st.lists(VALUES, max_size=3), max_size=2),
    extra=st.lists(st.sampled_from([*FLAGS, *TEXTS]), max_size=5),
)
@example(command="sft", args={}, extra=["--dataset", "a", "--", "b"])
def test_lint_and_parser_agree(command: str, args: dict[str, object], extra: list[str]) -> None:
    refused = complaint(parser(command), [*argv_of(args), "--max_length", "9", *extra])
    found = check_args(command, args, extra, TABLE)
    stricter = [p for p in found if is_stricter(p, args)]
    assert bool(refused) == (len(found) > len(stricter)) or (refused and stricter), (refused, found)


def is_stricter(problem: ArgProblem, args: dict[str, object]) -> bool:
    """What argparse lets pass: `--see` for --seed, `--seed=--`, and `--foo=- a`, a value to it."""
    spaced = problem.code == "unknown-arg" and " " in str(args.get(problem.name, ""))
    return problem.name == "see" or problem.message.endswith("got '--'") or spaced


def test_the_guides_megatron_command_is_taken() -> None:
    argv = "--model m --dataset d --tuner_type lora --tensor_model_parallel_size 2 --sequence_parallel true"
    argv += " --recompute_granularity full --recompute_method uniform --recompute_num_layers 1"
    assert complaint(parser("megatron sft"), [*argv.split(), "--no_save_optim", "true"]) is None
    refused = complaint(parser("megatron sft"), ["--num_workers", "4"])
    assert refused == "remaining_argv: ['--num_workers', '4']"
