"""Which checkpoints may be resumed from, merged and served."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path

import pytest

from runner.core.checkpoint import CheckpointFacts, incomplete_because
from runner.store.outputs import best_checkpoint, complete_checkpoints, judged_checkpoints


def checkpoint(folder: Path, step: int, ranks: int = 1, best: str | None = None) -> Path:
    """A whole one, as ms-swift leaves it."""
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (path / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    state = {"global_step": step, "best_model_checkpoint": best}
    (path / "trainer_state.json").write_text(json.dumps(state))
    (path / "args.json").write_text("{}")
    states = ["rng_state.pth"] if ranks == 1 else [f"rng_state_{r}.pth" for r in range(ranks)]
    for name in ("optimizer.pt", "scheduler.pt", *states):
        with zipfile.ZipFile(path / name, "w") as archive:
            archive.writestr("data", "x")
    return path


def why(path: Path, ranks: int = 1) -> str | None:
    return dict(judged_checkpoints(path.parent, ranks))[path]


def test_a_whole_one_is_complete(tmp_path: Path) -> None:
    assert why(checkpoint(tmp_path, 4)) is None
    assert why(checkpoint(tmp_path, 6, ranks=2), ranks=2) is None


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json",
                                  "adapter_model.safetensors"])  # fmt: skip
def test_one_without_a_part_is_not(tmp_path: Path, name: str) -> None:
    path = checkpoint(tmp_path, 4)
    (path / name).unlink()
    assert why(path)


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "optimizer.pt", "trainer_state.json"])
def test_one_that_is_cut_off_is_not(tmp_path: Path, name: str) -> None:
    path = checkpoint(tmp_path, 4)
    whole = (path / name).read_bytes()
    (path / name).write_bytes(whole[:-3])
    assert why(path)


def test_marks_of_an_unfinished_write(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 4)
    (path / "checkpoint-is-incomplete.txt").write_text("")
    assert "did not end" in str(why(path))
    other = checkpoint(tmp_path, 8)
    (other / "trainer_state.json").write_text('{"global_step": 7}')
    assert "of step 7" in str(why(other))


def test_every_rank_must_have_saved(tmp_path: Path) -> None:
    assert "rng_state_0.pth" in str(why(checkpoint(tmp_path, 4), ranks=2))


def test_save_only_model_needs_no_optimizer(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 4)
    (path / "optimizer.pt").unlink()
    (path / "args.json").write_text('{"save_only_model": true}')
    assert why(path) is None


def test_nothing_is_resumed_without_its_optimizer(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 4)
    (path / "optimizer.pt").unlink()
    (path / "args.json").write_text('{"save_only_model": true}')
    assert complete_checkpoints(tmp_path) == [path]
    ((_, why),) = judged_checkpoints(tmp_path, to_resume=True)
    assert why is not None


def test_every_shard_that_the_names_promise_must_be_there() -> None:
    shards = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
    rest = ["optimizer.pt", "scheduler.pt", "rng_state.pth"]
    assert verdict([*shards, *rest]) is None
    assert verdict([*shards[:2], *rest]) == f"{shards[2]} is missing"


RNG = ["rng_state_0.pth", "rng_state_1.pth"]
DEEPSPEED = [
    "adapter_model.safetensors",
    "global_step9/mp_rank_00_model_states.pt",
    "global_step9/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
    "global_step9/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
    "latest",
    *RNG,
]
FSDP_SHARDED = [
    "pytorch_model_fsdp_0/__0_0.distcp", "pytorch_model_fsdp_0/.metadata",
    "optimizer_0/__0_0.distcp", "optimizer_0/.metadata", "scheduler.pt", *RNG,
]  # fmt: skip
FSDP_FULL = ["model.safetensors", "pytorch_model_fsdp.bin", "optimizer.bin", "scheduler.pt", *RNG]
MEGATRON = [
    "args.json", "latest_checkpointed_iteration.txt", "iter_0000009/common.pt", "iter_0000009/__0_0.distcp",
    "iter_0000009/.metadata", "iter_0000009/metadata.json",
]  # fmt: skip


def verdict(files: list[str], ranks: int = 1, step: int | None = 9) -> str | None:
    return incomplete_because(CheckpointFacts("checkpoint-9", dict.fromkeys(files, 1), step), ranks)


@pytest.mark.parametrize(
    ("files", "step", "needed"),
    [
        (DEEPSPEED, 9, DEEPSPEED[1:]),
        (FSDP_SHARDED, 9, ["pytorch_model_fsdp_0/.metadata", "optimizer_0/.metadata", "scheduler.pt", *RNG]),
        (FSDP_FULL, 9, FSDP_FULL[1:]),
        (MEGATRON, None, ["latest_checkpointed_iteration.txt"]),
        ([*MEGATRON[:-1], "model.safetensors"], None, ["latest_checkpointed_iteration.txt", MEGATRON[-2]]),
    ],
    ids=["deepspeed", "fsdp sharded", "fsdp full", "megatron", "megatron and safetensors"],
)
def test_layouts_of_other_frameworks(files: list[str], step: int | None, needed: list[str]) -> None:
    assert verdict(files, 2, step) is None
    for gone in needed:
        assert verdict([f for f in files if f != gone], 2, step), gone


def test_megatron_of_another_step_and_half_written() -> None:
    assert verdict([f.replace("0009", "0008") for f in MEGATRON], 2, None)
    assert verdict([f for f in MEGATRON if "metadata" not in f], 2, None)


def test_newest_by_number_and_never_a_merged_one(tmp_path: Path) -> None:
    for step in (9, 10, 100):
        checkpoint(tmp_path, step)
    (tmp_path / "checkpoint-100-merged").mkdir()
    (tmp_path / "last-checkpoint").symlink_to(tmp_path / "checkpoint-9")
    (tmp_path / "checkpoint-100" / "optimizer.pt").unlink()
    assert [p.name for p in complete_checkpoints(tmp_path)] == ["checkpoint-9", "checkpoint-10"]


def test_best_is_what_the_trainer_says(tmp_path: Path) -> None:
    checkpoint(tmp_path, 2)
    assert best_checkpoint(tmp_path) is None
    checkpoint(tmp_path, 4, best="/elsewhere/checkpoint-2")
    assert best_checkpoint(tmp_path) == tmp_path / "checkpoint-2"
