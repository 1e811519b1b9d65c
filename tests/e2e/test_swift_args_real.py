"""The committed tables against the real dataclasses and parsers of each supported ms-swift."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from overlays import OVERLAYS, complaints, described, overlay
from table_parser import complaint, parser_from

from runner.core.lint import ArgTable, check_args
from runner.data.load import DATA, swift_arg_table
from runner.data.swift_args.extract import extract, render

pytestmark = pytest.mark.swift

VERSIONS = ["4.6.0", *OVERLAYS]
COMPUTED = {"optim"}  # transformers sets these defaults by what is installed
PROBES = [
    ["--lora_rank", "8"],
    ["--lora_rank=8"],
    ["--lora-rank", "8"],
    ["--lora_rank", "1e3"],
    ["--lora", "8"],
    ["--weight", "0.1"],
    ["--learning_rate", "-1e-5"],
    ["--learning_rate", "-.5"],
    ["--system", "-hello"],
    ["--system", "- a b"],
    ["--system", "--lora_rank=4 and so on"],
    ["--system=-hello"],
    ["--system", "--"],
    ["--packing"],
    ["--packing", "Yes"],
    ["--packing", "2"],
    ["--no_add_version"],
    ["--no-add-version"],
    ["--no_add_version", "true"],
    ["--lazy_tokenize"],
    ["--torch_dtype", "bf16"],
    ["--quant_bits", "4"],
    ["--quant_bits", "5"],
    ["--parallelism_config", "{}"],
    ["--liger_kernel_config", '{"a": true}'],
    ["--debug", "underflow_overflow"],
    ["--debug", "x"],
    ["--dataset"],
    ["--dataset", "a", "-1", "--", "b"],
    ["--gradient_checkpointing_kwargs", '{"use_reentrant": false}'],
    ["--log_level", "loud"],
    ["--report_to", "none"],
    ["stray"],
    ["--use_npu"],
    ["--npu_precision", "apollo"],
    ["--foo", "1", "--ignore_args_error", "true"],
    ["-h"],
]


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def over(version: str, stack_python: Path, pytestconfig: pytest.Config) -> Path | None:
    if version not in OVERLAYS:
        return None
    assert pytestconfig.cache is not None
    return overlay(stack_python, pytestconfig.cache.mkdir("swift-overlays"), version)


def of_syntax(spec: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "type": "choice"} if "choices" in spec else spec


def of_reality(spec: dict[str, Any]) -> dict[str, Any]:
    kind = "choice" if "choices" in spec else {"Path": "str"}.get(spec["type"], spec["type"])
    return {**spec, "type": kind}


def test_syntax_and_dataclasses_say_the_same(version: str, over: Path | None, stack_python: Path) -> None:
    table = ArgTable.of(swift_arg_table(version))
    for command, real in described(stack_python, over).items():
        mine = table.commands[command]
        assert sorted(mine) == sorted(real), command
        for name, spec in real.items():
            want, have = of_reality(spec), of_syntax(dict(mine[name]))
            if name in COMPUTED:
                want.pop("default")
            assert have == want, f"{command} {name}"


def test_the_committed_table_is_what_the_packages_give(
    version: str, over: Path | None, stack_python: Path
) -> None:
    raw = swift_arg_table(version)
    key = {k: raw[k] for k in ("ms_swift", "transformers", "trl")}
    source = over or _site_packages(stack_python)
    name = f"ms-swift-{key['ms_swift']}_transformers-{key['transformers']}_trl-{key['trl']}.json"
    assert render(extract(source, key)) == (DATA / "swift_args" / name).read_text(encoding="utf-8")


def test_real_parser_lint_and_table_parser_agree(version: str, over: Path | None, stack_python: Path) -> None:
    table = ArgTable.of(swift_arg_table(version))
    made = parser_from(table, "sft")
    answers = complaints(stack_python, [("sft", argv) for argv in PROBES], over)
    for argv, real in zip(PROBES, answers, strict=True):
        assert (complaint(made, argv) is None) == (real is None), (argv, real)
        found = [p for p in check_args("sft", {}, argv, table) if p.severity == "error"]
        written_out = argv[0] in ("--lora-rank", "--no-add-version")  # ours is stricter there
        assert bool(found) == (real is not None or written_out), (argv, real, found)


def _site_packages(python: Path) -> Path:
    code = "import json, sysconfig; print(json.dumps(sysconfig.get_path('purelib')))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout))
