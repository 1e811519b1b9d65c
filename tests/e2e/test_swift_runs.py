"""Real ms-swift through the real CLI, on the CPU: every way of training, and stopping one."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli import Cli

from runner.store.outputs import judged_checkpoints

pytestmark = pytest.mark.swift

TINY = Path(__file__).parents[2] / "jobs" / "tiny"
LORA = {"tuner_type": "lora", "target_modules": "all-linear", "learning_rate": 1e-3}
FULL = {"tuner_type": "full", "learning_rate": 1e-4}


def args(model: Path, **more: Any) -> dict[str, Any]:
    common = {
        "model": str(model), "model_type": "qwen3", "template": "qwen3", "torch_dtype": "float32",
        "split_dataset_ratio": 0, "max_steps": 4, "save_steps": 2, "logging_steps": 1, "max_length": 256,
        "per_device_train_batch_size": 4, "gradient_accumulation_steps": 1, "dataset_num_proc": 1,
        "dataloader_num_workers": 0, "report_to": "none",
    }  # fmt: skip
    return {**common, **more}


def train(cli: Cli, kind: str, swift: dict[str, Any], **more: Any) -> Path:
    """A job file with one training step, beside its data."""
    for file in TINY.iterdir():
        if file.suffix in (".jsonl", ".py"):
            shutil.copy(file, cli.work)
    job = {"name": "t", "stack": "cpu", "steps": [{"name": "train", "kind": kind, "args": swift, **more}]}
    return cli.job(yaml.safe_dump(job, sort_keys=False, allow_unicode=True))


def checkpoints(cli: Cli, ranks: int = 1) -> dict[str, str | None]:
    """Name -> why it is incomplete, or None."""
    folder = cli.folder() / "steps" / "train" / "output"
    return {p.name: why for p, why in judged_checkpoints(folder, ranks)}


def rows(cli: Cli) -> list[dict[str, Any]]:
    text = (cli.folder() / "steps" / "train" / "output" / "logging.jsonl").read_text()
    return [row for row in map(json.loads, text.splitlines()) if "loss" in row]


def test_the_whole_loop_of_the_demo(cli: Cli, stack_python: Path) -> None:
    cli("submit", "--wait", TINY.parent / "quickstart-cpu.yaml", timeout=400)
    steps = cli.steps()
    assert {s["state"] for s in steps.values()} == {"SUCCEEDED"}
    assert "largest logit difference" in cli("show").stdout
    assert "3 of 3 served as trained, none by the untouched base" in cli.log("compare").read_text()
    answers = Path(steps["infer"]["outputs"]["result"]).read_text(encoding="utf-8").splitlines()
    assert len(answers) == len((TINY / "train.jsonl").read_text(encoding="utf-8").splitlines())
    cli.wait_until_idle()


def test_ddp_full_fine_tune_is_one_training_of_two_processes(cli: Cli, tiny_model: Path) -> None:
    swift = args(tiny_model, dataset=["train.jsonl"], **FULL)
    cli("submit", "--wait", train(cli, "sft", swift, resources={"npus": 2}))
    newest = cli.folder() / "steps" / "train" / "output" / "checkpoint-4"
    assert {p.name for p in newest.glob("rng_state*")} == {"rng_state_0.pth", "rng_state_1.pth"}
    assert "parallel_mode" not in cli.log("train").read_text()
    assert checkpoints(cli, 2) == {"checkpoint-2": None, "checkpoint-4": None}
    assert cli.steps()["train"]["outputs"]["checkpoint"] == str(newest)
    assert len(rows(cli)) == 4


def test_dpo(cli: Cli, tiny_model: Path) -> None:
    cli(
        "submit",
        "--wait",
        train(cli, "rlhf", args(tiny_model, rlhf_type="dpo", dataset=["dpo.jsonl"], **LORA)),
    )
    assert "rewards/margins" in rows(cli)[-1]
    assert checkpoints(cli) == {"checkpoint-2": None, "checkpoint-4": None}


def test_continued_pre_training_with_a_secret_that_stands_nowhere(cli: Cli, tiny_model: Path) -> None:
    job = train(cli, "pt", args(tiny_model, dataset=["pt.jsonl"], **FULL), secrets=["SOME_TOKEN"])
    cli("submit", "--wait", job, SOME_TOKEN="PLANTED-1a2b3c")
    output = cli.folder() / "steps" / "train" / "output"
    assert (output / "checkpoint-4" / "args.json").exists()
    written = [p for p in cli.home.rglob("*") if p.is_file() and not p.is_symlink()]
    assert not [p for p in written if b"PLANTED-1a2b3c" in p.read_bytes()]
    assert checkpoints(cli) == {"checkpoint-2": None, "checkpoint-4": None}


def test_grpo_with_a_reward_plugin_of_the_jobs_folder(cli: Cli, tiny_model: Path) -> None:
    grpo = {
        "rlhf_type": "grpo", "dataset": ["grpo.jsonl"], "external_plugins": ["reward.py"],
        "reward_funcs": ["tiny_overlap"], "num_generations": 4, "max_completion_length": 24,
        "temperature": 1.0, "use_vllm": False,
    }  # fmt: skip
    cli("submit", "--wait", train(cli, "rlhf", args(tiny_model, **grpo, **LORA)), timeout=120)
    assert "rewards/TinyOverlap/mean" in rows(cli)[-1]


@pytest.mark.parametrize(("processes", "workers"), [(1, 0), (1, 2), (2, 0)])
def test_stop_leaves_a_complete_checkpoint_of_the_stopped_step(
    cli: Cli, tiny_model: Path, processes: int, workers: int
) -> None:
    swift = args(tiny_model, dataset=["train.jsonl"], **LORA)
    swift |= {"max_steps": 5000, "save_steps": 5000, "dataloader_num_workers": workers}
    for _ in range(
        processes
    ):  # the ranks of transformers do not agree on the step: rarely they wait for each other
        cli("submit", train(cli, "sft", swift, resources={"npus": processes}))
        wait_for_steps(cli, 3)
        cli("stop", timeout=180)
        cli.wait_until_idle()
        found = checkpoints(cli, processes)
        if list(found.values()) == [None]:
            break
    assert list(found.values()) == [None], found
    (name,) = found
    last = rows(cli)[-1]["global_step/max_steps"].split("/")[0]
    assert abs(int(name.removeprefix("checkpoint-")) - int(last)) <= 1
    assert cli.json("show")["run"]["state"] == "CANCELLED"
    cli("wait", code=130)


def test_killed_training_goes_on_from_its_last_complete_checkpoint(cli: Cli, tiny_model: Path) -> None:
    swift = args(tiny_model, dataset=["train.jsonl"], **LORA)
    swift |= {"max_steps": 60, "save_steps": 10}
    retry = {"attempts": 2, "resume": True, "backoff": 0.1}
    cli("submit", train(cli, "sft", swift, retry=retry))
    wait_for_steps(cli, 25)
    assert cli.kill("swift/cli/sft.py") >= 1
    cli("wait", timeout=120)
    attempts = cli.json("show")["attempts"]
    assert [(a["n"], a["reason"]) for a in attempts] == [(1, "signal"), (2, "exit_code")]
    assert "--resume_from_checkpoint" in cli.log("train", 2).read_text()
    assert checkpoints(cli)["checkpoint-60"] is None


def test_a_stopped_training_is_taken_up_again_by_hand(cli: Cli, tiny_model: Path) -> None:
    """Stop, damage the newest checkpoint, retry: the same number of steps, each once, in one log."""
    swift = args(tiny_model, dataset=["train.jsonl"], **LORA)
    swift |= {"max_steps": 60, "save_steps": 10, "save_total_limit": 5}
    cli("submit", train(cli, "sft", swift))
    wait_for_steps(cli, 25)
    cli("stop")
    stopped = [name for name, why in checkpoints(cli).items() if why is None]
    newest = cli.folder() / "steps" / "train" / "output" / stopped[-1]
    (newest / "optimizer.pt").unlink()
    cli("retry", "1", "--resume", "--wait", timeout=120)
    log = cli.log("train", 2).read_text()
    assert f"[runner] {newest.name} is skipped: the optimizer's state is missing" in log
    assert f"[runner] going on from {stopped[-2]}" in log
    shown = cli.json("show")
    assert [a["reason"] for a in shown["attempts"]] == ["user", "exit_code"]
    series = shown["metrics"]["train"]["rows"]
    assert [r["step"] for r in series] == list(range(1, 61))
    assert len(list((cli.folder() / "steps" / "train").rglob("logging.jsonl"))) == 1
    assert checkpoints(cli)["checkpoint-60"] is None
    cli.wait_until_idle()


def test_killed_agent_and_supervisor_of_two_processes_lose_no_training(cli: Cli, tiny_model: Path) -> None:
    swift = args(tiny_model, dataset=["train.jsonl"], **LORA)
    swift |= {"max_steps": 40, "save_steps": 10}
    retry = {"attempts": 2, "resume": True, "backoff": 0.1}
    cli("submit", train(cli, "sft", swift, retry=retry, resources={"npus": 2}))
    wait_for_steps(cli, 15)
    assert cli.kill("runner submit") == 1
    assert cli.kill("runner/entry") == 1
    cli("wait", timeout=150)
    shown = cli.json("show")
    assert [a["reason"] for a in shown["attempts"]] == ["host_lost", "exit_code"]
    assert [r["step"] for r in shown["metrics"]["train"]["rows"]] == list(range(1, 41))
    assert checkpoints(cli, 2)["checkpoint-40"] is None
    cli.wait_until_idle()


def wait_for_steps(cli: Cli, steps: int) -> None:
    until = time.monotonic() + 90
    file = cli.folder() / "steps" / "train" / "output" / "logging.jsonl"
    while not file.exists() or len(rows(cli)) < steps:
        assert time.monotonic() < until, cli.tail()
        time.sleep(0.1)
