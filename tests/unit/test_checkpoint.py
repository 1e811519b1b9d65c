"""Which checkpoints may be resumed from, merged and served."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path

import pytest

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
