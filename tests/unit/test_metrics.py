"""From the lines of logging.jsonl to one row for each step."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.cli.chart import chart, final_line
from runner.core.compile import compile_plan
from runner.core.job import read_job
from runner.core.metrics import Row, final, read_rows, row_text, series
from runner.core.plan import Output, PlannedStep
from runner.core.reportcheck import missing_reporters
from runner.core.stack import Stack
from runner.errors import Finding, SpecError
from runner.store.folders import RunFolder
from runner.store.metrics import keep_metrics, read_metrics
from runner.store.rows import Step

TRAIN = '{"loss": 7.2, "grad_norm": 1.1, "epoch": 0.2, "global_step/max_steps": "3/60", "elapsed_time": "0s"}'
EVAL = '{"eval_loss": 6.9, "eval_token_acc": 0.5, "epoch": 0.2, "global_step/max_steps": "3/60"}'
MEGATRON = '{"loss": 2.5, "memory(GiB)": 31.25, "iteration": "3/60", "remaining_time": "1m 2s"}'
SUMMARY = (
    '{"best_metric": 6.8, "best_model_checkpoint": null, "global_step": 60, "log_history": [{"step": 1}]}'
)


def test_numbers_of_a_line_are_kept_under_their_names() -> None:
    assert read_rows([TRAIN]) == [{"step": 3, "max_steps": 60, "loss": 7.2, "grad_norm": 1.1, "epoch": 0.2}]
    assert read_rows([MEGATRON]) == [{"step": 3, "max_steps": 60, "loss": 2.5, "memory(GiB)": 31.25}]
    assert read_rows([SUMMARY]) == [{"step": 60, "best_metric": 6.8}]


@pytest.mark.parametrize(
    "line",
    [
        "", TRAIN[:40], "null", "[1]", '"3/60"', '{"loss": 1.0}', '{"loss": 1, "global_step": true}',
        '{"global_step": -1}', '{"global_step": 2.5}', '{"iteration": "3 of 60"}', '{"iteration": "x/60"}',
        "[" * 100_000, '{"global_step": 1' + "0" * 400 + "}", "\ufffd\x00{", '{"iteration": {"a": 1}}',
    ],
)  # fmt: skip
def test_odd_lines_are_left_out(line: str) -> None:
    assert [r["step"] for r in read_rows([TRAIN, line, MEGATRON])] == [3, 3]


def test_what_is_no_number_is_left_out_of_its_row() -> None:
    line = '{"global_step": 1, "a": true, "b": "1", "c": null, "d": [1], "e": 1' + "0" * 400 + ', "f": NaN}'
    (row,) = read_rows([line])
    assert set(row) == {"step", "f"}
    assert math.isnan(row["f"])


def test_training_and_evaluation_of_a_step_are_one_row() -> None:
    (row,) = series(read_rows([TRAIN, EVAL]))
    assert (row["step"], row["loss"], row["eval_loss"]) == (3, 7.2, 6.9)


def rows(*steps: int, attempt: int = 1) -> list[Row]:
    return [{"step": s, "loss": attempt + s / 1000} for s in steps]


def test_a_resumed_attempt_replaces_what_it_does_again() -> None:
    assert series([*rows(1, 2, 3, 4, 5), *rows(4, 5, 6, attempt=2)]) == [
        *rows(1, 2, 3),
        *rows(4, 5, 6, attempt=2),
    ]


def test_an_attempt_from_the_beginning_replaces_all() -> None:
    assert series([*rows(1, 2, 3, 4, 5), *rows(1, 2, attempt=2)]) == rows(1, 2, attempt=2)


@st.composite
def attempts(draw: st.DrawFn) -> list[list[int]]:
    """Attempts that log steps in order; each goes on at, or somewhere before, where the last one ended."""
    logged: list[list[int]] = []
    reached = 0
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, reached))
        reached = start + draw(st.integers(0, 8))
        steps = range(start + 1, reached + 1)
        logged.append([s for s in steps for _ in range(draw(st.integers(1, 3)))])
    return logged


@given(attempts())
def test_any_split_over_attempts_gives_each_step_once_in_order(logged: list[list[int]]) -> None:
    written = [row for n, steps in enumerate(logged) for row in rows(*steps, attempt=n)]
    found = series(written)
    assert [r["step"] for r in found] == list(range(1, (written[-1]["step"] if written else 0) + 1))
    for row in found:
        assert row == [w for w in written if w["step"] == row["step"]][-1]
    assert series(found) == found
    kept: list[Row] = []
    for n, steps in enumerate(logged):
        kept = series([*kept, *rows(*steps, attempt=n)])
    assert kept == found


@given(st.dictionaries(st.text(), st.floats() | st.integers(-(10**15), 10**15)), st.integers(0, 10**15))
def test_a_kept_row_is_read_back(metrics: dict[str, float], step: int) -> None:
    names = {"step", "iteration", "global_step", "global_step/max_steps"}
    row = {"step": step, **{k: v for k, v in metrics.items() if k not in names}}
    assert repr(read_rows([row_text(row)])) == repr([row])  # repr: NaN is not equal to itself


@given(st.binary(max_size=200))
def test_no_bytes_are_too_odd(raw: bytes) -> None:
    final(series(read_rows(raw.decode("utf-8", "replace").split("\n"))))


def test_final_is_the_last_of_each_and_the_best_evaluation() -> None:
    found = series([
        {"step": 1, "loss": 3.0, "eval_loss": 2.5}, {"step": 2, "loss": 2.0, "eval_loss": 1.5},
        {"step": 3, "eval_loss": math.nan}, {"step": 4, "loss": 1.0}, {"step": 4, "eval_loss": 1.75},
    ])  # fmt: skip
    assert final(found) == {
        "step": 4, "loss": 1.0, "eval_loss": 1.75, "best_eval_loss": 1.5, "best_eval_step": 2,
    }  # fmt: skip
    assert final([]) == {}
    assert final_line(final(found)) == "step 4, loss 1, eval_loss 1.75 (lowest 1.5 at step 2)"


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=50))
def test_chart_fits_eighty_columns(values: list[float]) -> None:
    lines = chart([{"step": i, "loss": v} for i, v in enumerate(values)], "loss", 80)
    assert bool(lines) == (sum(map(math.isfinite, values)) >= 2)
    assert all(len(line) <= 80 and line.isprintable() for line in lines)


def test_chart_shows_how_it_goes() -> None:
    lines = chart([{"step": s, "loss": 100.0 - s} for s in range(1, 101)], "loss", 60)
    drawn = [line.partition("┤")[2] or line.partition("│")[2] for line in lines[1:-2]]
    lefts = [len(line) - len(line.lstrip()) for line in drawn]
    assert lefts == sorted(lefts)
    assert lefts[0] == 0
    assert lines[1].lstrip().startswith("99 ┤")
    assert lines[-1].split() == ["1", "100"]


# What an attempt has logged, kept beside its output.


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path)
    made.output("train").mkdir(parents=True)
    made.plan.write_text("{}")
    return made


PLANNED = PlannedStep(commands=(), name="train", kind="sft", outputs={"logging": Output(find="path")})
STEP = Step(1, "train", 0, "sft", "ACTIVE", None, None, None, None, None, {}, 1.0, None, None, 0)


def log(folder: RunFolder, *written: Row) -> Path:
    path = folder.output("train") / "logging.jsonl"
    path.write_text("".join(f"{row_text(row)}\n" for row in written))
    return path


def test_metrics_outlive_the_output(folder: RunFolder) -> None:
    path = log(folder, *rows(1, 2, 3))
    keep_metrics(folder, PLANNED, {"logging": str(path)})
    path.unlink()
    assert read_metrics(folder, STEP) == rows(1, 2, 3)
    keep_metrics(folder, PLANNED, {"logging": str(path)})  # an attempt that ended before it logged anything
    assert read_metrics(folder, STEP) == rows(1, 2, 3)


def test_a_fresh_attempt_replaces_and_a_resumed_one_adds(folder: RunFolder) -> None:
    keep_metrics(folder, PLANNED, {"logging": str(log(folder, *rows(1, 2, 3)))})
    log(folder, *rows(3, 4, attempt=2))
    assert read_metrics(folder, STEP) == [*rows(1, 2), *rows(3, 4, attempt=2)]
    log(folder, *rows(1, attempt=2))
    assert read_metrics(folder, STEP) == rows(1, attempt=2)


def test_an_older_log_is_another_runs(folder: RunFolder) -> None:
    path = log(folder, *rows(1, 2, 3))
    os.utime(path, (1, 1))
    keep_metrics(folder, PLANNED, {"logging": str(path)})
    assert read_metrics(folder, STEP) == []


def test_an_ended_step_keeps_its_own(folder: RunFolder) -> None:
    path = log(folder, *rows(1, 2))
    keep_metrics(folder, PLANNED, {"logging": str(path)})
    log(folder, *rows(1, 2, attempt=9))
    assert read_metrics(folder, replace(STEP, ended=2.0)) == rows(1, 2)


def test_live_rows_of_an_output_dir_elsewhere(folder: RunFolder) -> None:
    (folder.path / "mine").mkdir()
    (folder.path / "mine" / "logging.jsonl").write_text(TRAIN + "\n" + TRAIN[:30])
    folder.attempt("train", 2).mkdir(parents=True)
    argv = ["swift", "sft", "--output_dir", "mine"]
    record = {"commands": [{"argv": argv}], "cwd": str(folder.path)}
    (folder.attempt("train", 2) / "attempt.json").write_text(json.dumps(record))
    assert [r["loss"] for r in read_metrics(folder, STEP)] == [7.2]


@pytest.mark.parametrize("name", ["", "nowhere/x", "a\0b", "folder", "pipe", "/dev/zero", "\udcff", "binary"])
def test_odd_files_are_no_metrics(folder: RunFolder, name: str) -> None:
    (folder.path / "folder").mkdir()
    os.mkfifo(folder.path / "pipe")
    (folder.path / "binary").write_bytes(bytes(range(256)) * 9)
    keep_metrics(folder, PLANNED, {"logging": f"{folder.path}/{name}" if name[:1] != "/" else name})
    assert read_metrics(folder, STEP) == []


# `report` of the spec.

CPU = Stack.model_validate(
    {
        "stack": "cpu",
        "title": "",
        "python": "3.11",
        "packages": {},
        "targets": {"cpu": {"bases": {"debian12": "debian"}, "source": "a test"}},
    }
)


def planned(text: str, *, offline: bool = False) -> PlannedStep:
    job = read_job(f"name: demo\nkind: sft\n{text}".encode(), "job.yaml")
    return compile_plan(job, CPU, {}, offline=offline).steps[0]


def flag(step: PlannedStep, name: str) -> str | None:
    argv = step.commands[0].argv
    return argv[argv.index(f"--{name}") + 1] if f"--{name}" in argv else None


def test_report_becomes_flags_with_a_note() -> None:
    step = planned("report: [tensorboard]\nargs: {model: m}")
    assert flag(step, "report_to") == "tensorboard"
    assert [n.why for n in step.notes if n.what == "--report_to tensorboard"] == [
        "`report` of the spec; events go to ${{ here.output }}/runs"
    ]
    assert flag(planned("args: {model: m}"), "report_to") is None


@pytest.mark.parametrize("own", ["args: {report_to: none}", "extra_args: [--report_to, none]"])
def test_the_args_of_a_step_win_over_report(own: str) -> None:
    step = planned(f"report: [swanlab]\n{own}")
    assert step.commands[0].argv.count("--report_to") == 1
    assert flag(step, "report_to") == "none"
    assert flag(step, "swanlab_project") is None


def test_swanlab_sends_nothing_without_its_key() -> None:
    alone = planned("report: [swanlab]\nargs: {model: m}")
    assert (flag(alone, "swanlab_project"), flag(alone, "swanlab_mode")) == ("demo", "local")
    assert alone.env["SWANLAB_LOG_DIR"] == "${{ here.output }}/swanlab"
    key = "report: [swanlab]\nsecrets: [SWANLAB_API_KEY]\nargs: {model: m}"
    assert flag(planned(key), "swanlab_mode") is None
    assert flag(planned(key, offline=True), "swanlab_mode") == "local"
    cloud = planned("report: [swanlab]\nargs: {model: m, swanlab_mode: cloud, swanlab_project: other}")
    assert (flag(cloud, "swanlab_project"), flag(cloud, "swanlab_mode")) == ("other", "cloud")


def test_wandb_has_the_job_as_its_project() -> None:
    step = planned("report: [wandb]\nenv: {WANDB_MODE: online}\nargs: {model: m}")
    assert step.env["WANDB_PROJECT"] == "demo"
    assert step.env["WANDB_MODE"] == "online"
    assert planned("report: [wandb]\nargs: {model: m}").env["WANDB_MODE"] == "offline"


def test_megatron_has_other_flags() -> None:
    job = read_job(b"name: demo\nkind: megatron-sft\nreport: [swanlab, wandb]\nargs: {model: m}", "job.yaml")
    step = compile_plan(job, CPU, {}).steps[0]
    assert flag(step, "wandb_project") == flag(step, "swanlab_project") == "demo"
    assert flag(step, "swanlab_mode") is None
    assert step.env["SWANLAB_MODE"] == step.env["WANDB_MODE"] == "offline"


def warned(text: str) -> list[Finding]:
    job = read_job(text.encode(), "job.yaml")
    return missing_reporters(job, "cpu", {"tensorboard": True, "swanlab": False}.get)


def test_a_reporter_that_the_stack_lacks_is_a_warning_at_its_place() -> None:
    job = "name: demo\nreport: [tensorboard, swanlab, wandb]\nsteps:\n  - {name: a, kind: sft}\n"
    (found,) = warned(job + "  - {name: b, kind: pt}\n")
    assert (found.severity, found.line, found.col) == ("warning", 2, 23)
    assert "no swanlab" in found.message
    own = "  - {name: b, kind: pt, report: [swanlab]}\n"
    assert [f.line for f in warned(job + own)] == [2, 5]
    assert warned("name: x\nkind: sft\nreport: [swanlab]\nargs: {report_to: none}") == []
    assert warned("name: x\nreport: [swanlab]\nkind: export\nargs: {model: a/b}") == []


@pytest.mark.parametrize("report", ["tensorboard", "[]", "[tensorbord]"])
def test_report_is_a_list_of_reporters(report: str) -> None:
    with pytest.raises(SpecError) as e:
        read_job(f"name: x\nkind: sft\nreport: {report}\n".encode(), "job.yaml")
    assert e.value.findings[0].line == 3
