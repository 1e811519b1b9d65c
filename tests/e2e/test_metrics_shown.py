"""Metrics of trainings as `runner show` tells them: live, over attempts, and when the output is gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli import Cli

TINY = Path(__file__).parents[2] / "jobs" / "tiny"
SWIFT = r"""
import json, os, pathlib, sys, time
output = pathlib.Path(sys.argv[sys.argv.index("--output_dir") + 1])
output.mkdir(parents=True, exist_ok=True)
if "ODD" in os.environ:
    sys.exit((output / "logging.jsonl").mkdir())
attempt = pathlib.Path(os.environ["SEEN"])
attempt.write_text(attempt.read_text() + "x" if attempt.exists() else "x")
first = len(attempt.read_text()) == 1
log = (output / "logging.jsonl").open("a")
for step in range(1, int(os.environ["FIRST" if first else "LATER"]) + 1):
    row = {"loss": 10.0 / step, "grad_norm": 1.5, "learning_rate": 1e-4, "memory(GiB)": 3.25,
           "elapsed_time": "1s", "global_step/max_steps": f"{step}/6"}
    print(json.dumps(row), file=log)
    if step % 3 == 0:
        print(json.dumps({"eval_loss": 1.0 + step, "global_step/max_steps": f"{step}/6"}), file=log)
log.write('{"loss": 1')
log.close()
while os.environ.get("UNTIL") and not pathlib.Path(os.environ["UNTIL"]).exists():
    time.sleep(0.02)
sys.exit(9 if first and os.environ["FIRST"] != "6" else 0)
"""


@pytest.fixture
def trains(cli: Cli) -> Callable[..., Path]:
    """A `swift` that logs some steps in no time, as a stack of its own; gives a job that trains with it."""
    root = cli.work.parent / "stack"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").symlink_to(os.path.realpath(cli.program.parent / "python"))
    (root / "bin" / "swift.py").write_text(SWIFT)
    program = root / "bin" / "swift"
    program.write_text('#!/bin/sh\nexec python "$(dirname "$0")/swift.py" "$@"\n')
    program.chmod(0o755)
    cli("stack", "adopt", "cpu", root)

    def job(args: dict[str, Any] | None = None, env: dict[str, str] | None = None, **more: Any) -> Path:
        seen = {"SEEN": "${{ run.dir }}/seen", "FIRST": "6", "LATER": "6", **(env or {})}
        step = {"name": "train", "kind": "sft", "args": {"model": "m", **(args or {})}, "env": seen}
        text = yaml.safe_dump({"name": "t", "stack": "cpu", "steps": [{**step, **more}]}, allow_unicode=True)
        return cli.job(text)

    return job


def steps_of(cli: Cli) -> list[int]:
    metrics = cli.json("show")["metrics"]
    return [row["step"] for row in metrics["train"]["rows"]] if metrics else []


def test_final_values_and_the_chart_of_the_loss(cli: Cli, trains: Callable[..., Path]) -> None:
    cli("submit", "--wait", trains())
    shown = cli("show", COLUMNS="80", FORCE_COLOR="").stdout
    last = "loss 1.667, grad_norm 1.5, learning rate 0.0001, memory 3.25 GiB"
    assert f"train: step 6/6, {last}, eval_loss 7 (lowest 4 at step 3)" in shown
    chart = shown.splitlines()[-11:]
    assert chart[0] == "loss"
    assert chart[1].startswith("   10 ┤")
    assert chart[8].startswith("1.667 ┤")
    assert all(len(line) <= 80 for line in chart)
    assert "\x1b" not in shown
    metrics = cli.json("show")["metrics"]["train"]
    assert metrics["rows"][2] == {
        "step": 3, "max_steps": 6, "loss": 10 / 3, "grad_norm": 1.5, "learning_rate": 1e-4,
        "memory(GiB)": 3.25, "eval_loss": 4.0,
    }  # fmt: skip
    assert metrics["final"]["best_eval_loss"] == 4.0


def test_metrics_are_there_while_it_runs_wherever_it_writes(cli: Cli, trains: Callable[..., Path]) -> None:
    go = cli.work / "go"
    cli("submit", trains({"output_dir": "mine/out"}, {"UNTIL": str(go)}))
    until = time.monotonic() + 20
    while steps_of(cli) != [1, 2, 3, 4, 5, 6]:
        assert time.monotonic() < until, cli.tail()
        time.sleep(0.05)
    assert cli.steps()["train"]["state"] == "ACTIVE"
    go.touch()
    cli("wait")
    assert steps_of(cli) == [1, 2, 3, 4, 5, 6]


def test_a_terminal_that_cannot_show_the_chart_has_the_line(cli: Cli, trains: Callable[..., Path]) -> None:
    cli("submit", "--wait", trains())
    environ = {**cli.env, "PYTHONIOENCODING": "gbk"}
    done = subprocess.run([cli.program, "show"], env=environ, cwd=cli.work, capture_output=True, check=True)
    assert done.stdout.decode("gbk").splitlines()[-1].startswith("train: step 6/6, ")


@pytest.mark.parametrize(("later", "left"), [("2", [1, 2]), ("0", [1, 2, 3, 4])])
def test_a_fresh_attempt_replaces_what_it_does_again(
    cli: Cli, trains: Callable[..., Path], later: str, left: list[int]
) -> None:
    retry = {"attempts": 2, "backoff": 0.1}
    cli("submit", "--wait", trains(env={"FIRST": "4", "LATER": later}, retry=retry))
    assert [a["code"] for a in cli.json("show")["attempts"]] == [9, 0]
    assert steps_of(cli) == left


def test_metrics_outlive_the_output(cli: Cli, trains: Callable[..., Path]) -> None:
    cli("submit", "--wait", trains())
    shutil.rmtree(cli.folder() / "steps" / "train" / "output")
    assert steps_of(cli) == [1, 2, 3, 4, 5, 6]
    assert "train: step 6/6" in cli("show").stdout


def test_a_run_without_metrics_is_shown_as_ever(cli: Cli, tmp_path: Path) -> None:
    cli("submit", "--wait", cli.job("name: one\nkind: command\nscript: echo '{}' > $RUNNER_OUTPUT/a\n"))
    assert cli.json("show")["metrics"] == {}
    assert cli("show").stdout.splitlines()[-1].startswith("one.output_dir: ")
    assert "no metrics" in cli("show", "--png", tmp_path / "x.png", code=2).stderr


def test_odd_logs_end_no_run(cli: Cli, trains: Callable[..., Path]) -> None:
    cli("submit", "--wait", trains(env={"FIRST": "0"}), code=9)  # one torn line
    cli("submit", "--wait", trains(env={"ODD": "1"}))
    assert cli.json("show", "1")["metrics"] == cli.json("show", "2")["metrics"] == {}


def test_picture(cli: Cli, trains: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    cli("submit", "--wait", trains())
    cli("show", "--png", tmp_path / "损失.png")
    assert (tmp_path / "损失.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "cannot write" in cli("show", "--png", "no/where/x.png", code=2).stderr


def test_picture_without_matplotlib_says_how_to_get_it(
    cli: Cli, trains: Callable[..., Path], tmp_path: Path
) -> None:
    cli("submit", "--wait", trains())
    missing = 'raise ModuleNotFoundError("No module named \'matplotlib\'", name="matplotlib")'
    (tmp_path / "matplotlib.py").write_text(missing)
    said = cli("show", "--png", tmp_path / "x.png", code=3, PYTHONPATH=str(tmp_path)).stderr
    assert "pip install 'ascend-runner[plot]'" in said


# Real ms-swift.


def training(cli: Cli, model: Path, **more: Any) -> Path:
    shutil.copy(TINY / "train.jsonl", cli.work)
    swift = {
        "model": str(model), "model_type": "qwen3", "template": "qwen3", "torch_dtype": "float32",
        "dataset": ["train.jsonl"], "split_dataset_ratio": 0.2, "max_steps": 30, "save_steps": 5,
        "eval_steps": 5, "logging_steps": 1, "max_length": 256, "tuner_type": "lora",
        "target_modules": "all-linear", "learning_rate": 1e-3, "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 1, "dataset_num_proc": 1, "dataloader_num_workers": 0,
    }  # fmt: skip
    job = {"name": "t", "stack": "cpu", "steps": [{"name": "train", "kind": "sft", "args": swift}], **more}
    return cli.job(yaml.safe_dump(job, sort_keys=False, allow_unicode=True))


@pytest.mark.swift
def test_real_training_that_is_killed_and_resumed_reports_each_step_once(cli: Cli, tiny_model: Path) -> None:
    retry = {"attempts": 2, "resume": True, "backoff": 0.1}
    cli("submit", training(cli, tiny_model, report=["tensorboard"], retry=retry))
    until = time.monotonic() + 90
    while len(steps_of(cli)) < 13:
        assert time.monotonic() < until, cli.tail()
        time.sleep(0.1)
    assert cli.kill("swift/cli/sft.py") >= 1
    cli("wait", timeout=120)
    assert "--resume_from_checkpoint" in cli.log("train", 2).read_text()
    log = cli.folder() / "steps" / "train" / "output" / "logging.jsonl"
    written = [json.loads(line) for line in log.read_text().splitlines()]
    assert len([w for w in written if "loss" in w]) > 30
    metrics = cli.json("show")["metrics"]["train"]
    assert [r["step"] for r in metrics["rows"]] == list(range(1, 31))
    assert [r["step"] for r in metrics["rows"] if "eval_loss" in r] == list(range(5, 31, 5))
    last = [w for w in written if w.get("global_step/max_steps") == "30/30" and "loss" in w][-1]
    assert metrics["final"]["loss"] == last["loss"]
    assert metrics["final"]["best_eval_loss"] == min(r.get("eval_loss", 99) for r in metrics["rows"])
    events = list((cli.folder() / "steps" / "train" / "output").rglob("events.out.tfevents.*"))
    assert events
    assert all(e.parent.name == "runs" for e in events)
