"""The committed argument tables: well-formed, quick to load, and with the arguments that matter."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from runner.core.argtable import ArgTable, Argument
from runner.data.load import DATA, swift_arg_table
from runner.data.swift_args.extract import COMMANDS, render

FILES = sorted((DATA / "swift_args").glob("*.json"))
TYPES = {"int", "float", "str", "bool", "dict", "ParallelismConfig"}


@pytest.fixture(params=FILES, ids=[f.stem for f in FILES])
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def argument(table: ArgTable, command: str, name: str) -> Argument:
    found = table.argument(command, name)
    assert found is not None, f"{command} has no {name}"
    return found


def test_three_releases_are_there() -> None:
    releases = {json.loads(f.read_bytes())["ms_swift"].rpartition(".")[0] for f in FILES}
    assert releases == {"4.3", "4.5", "4.6"}


def test_a_file_is_named_by_its_key_and_rendered_as_the_extractor_does(file: Path) -> None:
    raw = json.loads(file.read_bytes())
    assert raw["table"] == "swift-args/1"
    assert file.stem == f"ms-swift-{raw['ms_swift']}_transformers-{raw['transformers']}_trl-{raw['trl']}"
    assert file.read_text(encoding="utf-8") == render(raw)


def test_every_argument_is_well_formed_and_stands_once_per_command(file: Path) -> None:
    raw = json.loads(file.read_bytes())
    assert raw["commands"] == list(COMMANDS)
    seen: set[tuple[str, str]] = set()
    for group in raw["groups"]:
        for name, spec in group["arguments"].items():
            assert spec["type"] in TYPES, name
            assert spec.keys() <= {"type", "nargs", "choices", "default", "required"}, name
            assert spec.get("nargs") in (None, "?", "+"), name
            places = {(command, name) for command in group["commands"]}
            assert not places & seen
            seen |= places


def test_the_arguments_that_matter(file: Path) -> None:
    table = ArgTable.of(json.loads(file.read_bytes()))
    assert argument(table, "sft", "lora_rank") == Argument("lora_rank", "int", default=8)
    assert argument(table, "sft", "learning_rate").type == "float"
    assert argument(table, "sft", "add_version").negation
    assert argument(table, "pt", "dataset").nargs == "+"
    assert {"dpo", "grpo", "kto", "gkd"} <= set(argument(table, "rlhf", "rlhf_type").choices or ())
    assert argument(table, "infer", "result_path").type == "str"
    assert argument(table, "export", "merge_lora").type == "bool"
    assert argument(table, "deploy", "port").default == 8000
    assert argument(table, "app", "server_port").type == "int"
    assert argument(table, "eval", "eval_output_dir").type == "str"
    assert argument(table, "megatron sft", "tensor_model_parallel_size").default == 1
    assert argument(table, "megatron export", "to_mcore").type == "bool"
    assert "gkd" in (argument(table, "megatron rlhf", "rlhf_type").choices or ())
    sizes = {command: len(names) for command, names in table.commands.items()}
    assert sizes["sft"] > 320
    assert sizes["rlhf"] > 470
    assert sizes["megatron sft"] > 380


def test_transformers_own_arguments_come_with_its_version() -> None:
    old, new = ArgTable.of(swift_arg_table("4.3.2")), ArgTable.of(swift_arg_table("4.6.0"))
    assert old.argument("sft", "enable_jit_checkpoint") is None
    assert argument(new, "sft", "enable_jit_checkpoint").type == "bool"
    assert old.argument("sft", "overwrite_output_dir") is not None
    assert new.argument("sft", "overwrite_output_dir") is None


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        (("4.3.2", "4.57.6", "0.29.1"), ("4.3.2", True, True)),
        (("4.3.2", None, None), ("4.3.2", True, True)),
        (("4.3.0", "4.57.1", "0.28.0"), ("4.3.2", False, True)),
        (("4.6.0", "5.5.4", None), ("4.6.0", False, False)),
        (("4.6.2.dev0", "5.19.0", None), ("4.6.0", False, True)),
        (("4.5.0+local", None, None), ("4.5.3", False, True)),
        (("5.0.0", None, None), ("4.6.0", False, False)),
    ],
)
def test_the_nearest_table_is_chosen(
    asked: tuple[str, str | None, str | None], got: tuple[str, bool, bool]
) -> None:
    raw = swift_arg_table(*asked)
    assert (raw["ms_swift"], raw["exact"], raw["close"]) == got


def test_a_table_loads_in_a_few_milliseconds(file: Path) -> None:
    took = []
    for _ in range(5):
        start = time.perf_counter()
        ArgTable.of(json.loads(file.read_bytes()))
        took.append(time.perf_counter() - start)
    assert min(took) < 0.02
