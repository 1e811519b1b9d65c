"""Real ms-swift on the CPU under the supervisor alone: what a stop leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attempt import Attempt, Begin

from runner.store.outputs import judged_checkpoints

pytestmark = pytest.mark.swift

DATA = Path(__file__).parents[2] / "jobs" / "tiny" / "train.jsonl"
Train = Callable[..., Attempt]


@pytest.fixture
def train(begin: Begin, stack_python: Path, tiny_model: Path, tmp_path: Path) -> Train:
    """Start a LoRA fine-tune that would go on for minutes, and wait until it learns."""

    def start(processes: int, workers: int = 0, grace_s: float = 60) -> Attempt:
        args = {
            "model": tiny_model, "model_type": "qwen3", "template": "qwen3", "dataset": DATA,
            "split_dataset_ratio": 0, "tuner_type": "lora", "target_modules": "all-linear",
            "torch_dtype": "float32", "learning_rate": 1e-3, "max_steps": 5000, "save_steps": 5000,
            "logging_steps": 1, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 1,
            "max_length": 256, "dataset_num_proc": 1, "dataloader_num_workers": workers, "report_to": "none",
            "check_model": "false", "use_cpu": "true", "enable_jit_checkpoint": "true",
            "output_dir": tmp_path / "output", "add_version": "false",
        }  # fmt: skip
        argv = ["swift", "sft", *(str(word) for k, v in args.items() for word in (f"--{k}", v))]
        env = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        if processes > 1:
            env |= {"NPROC_PER_NODE": str(processes), "MASTER_PORT": str(free_port())}
        attempt = begin(argv, env=env, path_prepend=[str(stack_python.parent)], stop="ranks", grace_s=grace_s)
        until = time.monotonic() + 90
        while last_step(tmp_path / "output") < 3:
            assert time.monotonic() < until, attempt.log()[-3000:]
            assert attempt.process.poll() is None, attempt.log()[-3000:]
            time.sleep(0.1)
        return attempt

    return start


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def last_step(output: Path) -> int:
    file = output / "logging.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    steps = [row["global_step/max_steps"] for row in rows if "loss" in row]
    return int(steps[-1].split("/")[0]) if steps else 0


@pytest.mark.parametrize(("processes", "workers"), [(1, 2), (2, 2)])
def test_stop_leaves_a_complete_checkpoint_of_the_stopped_step(
    train: Train, tmp_path: Path, processes: int, workers: int
) -> None:
    for _ in range(3):  # the ranks of transformers do not agree on the step: rarely they wait for each other
        attempt = train(processes, workers, grace_s=30)
        attempt.term()
        end = attempt.end(seconds=90)
        if processes == 1 or not end["stop"]["killed"]:
            break
        shutil.rmtree(attempt.folder)
        shutil.rmtree(tmp_path / "output")
    assert (end["reason"], end["stop"]["killed"]) == ("user", [])
    judged = judged_checkpoints(tmp_path / "output", processes)
    assert [why for _, why in judged] == [None]
    # transformers saves before the optimizer's step, or after it when the signal came late in a step
    assert last_step(tmp_path / "output") - int(judged[0][0].name.split("-")[1]) in (0, 1)


def test_a_grace_that_ends_before_the_checkpoint_leaves_none_that_counts(
    train: Train, tmp_path: Path
) -> None:
    attempt = train(1, grace_s=1)  # transformers waits for 3 s before it begins to save
    attempt.term()
    end = attempt.end(seconds=30)
    assert (end["reason"], end["signal"]) == ("user", 9)
    assert all(why for _, why in judged_checkpoints(tmp_path / "output"))


def test_a_killed_rank_is_named_in_the_record(train: Train) -> None:
    attempt = train(2)
    (rank,) = (p for p in attempt.living() if b"LOCAL_RANK=1" in environ(p))
    os.kill(rank, signal.SIGKILL)
    end = attempt.end(seconds=60)
    assert end["reason"] == "exit_code"
    assert end["ranks"]["1"] == -9


def environ(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
