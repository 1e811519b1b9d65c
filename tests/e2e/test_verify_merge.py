"""verify_merge.py against a LoRA that real ms-swift trained and merged: right, tampered, and damaged."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "jobs" / "tiny"
VERIFY = ROOT / "runner" / "inside" / "verify_merge.py"
OFFLINE = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"}

pytestmark = pytest.mark.swift


@pytest.fixture(scope="module")
def made(stack_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with base, checkpoint-3 and merged: all that a short training leaves."""
    folder = tmp_path_factory.mktemp("合并 merge")
    python, swift = str(stack_python), str(Path(stack_python).with_name("swift"))
    call(python, TINY / "make_tiny.py", "--out", folder / "base")
    sft = (
        f"sft --model {{}} --model_type qwen3 --template qwen3 --dataset {{}} --output_dir {{}} {SFT}".split()
    )
    paths = iter((folder / "base", TINY / "train.jsonl", folder / "train"))
    call(swift, *(next(paths) if word == "{}" else word for word in sft))
    checkpoint = folder / "train" / "checkpoint-3"
    call(swift, "export", "--adapters", checkpoint, "--merge_lora", "true", "--output_dir", folder / "merged")
    return folder


SFT = (
    "--tuner_type lora --target_modules all-linear --learning_rate 1e-2 --max_steps 3 --use_cpu true"
    " --torch_dtype float32 --add_version false --check_model false --report_to none --split_dataset_ratio 0"
)


def call(*words: object) -> None:
    done = subprocess.run(
        [str(word) for word in words], env=OFFLINE, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def verify(python: Path, made: Path, merged: Path, *more: str) -> tuple[int, str, dict[str, Any]]:
    """Give the exit code, the last line and the verdict."""
    out = made / "out" / "verify.json"
    out.unlink(missing_ok=True)
    words = [
        python,
        VERIFY,
        "--adapter",
        made / "train" / "checkpoint-3",
        "--merged",
        merged,
        "--out",
        out,
        *more,
    ]
    done = subprocess.run(
        [str(word) for word in words], env=OFFLINE, capture_output=True, text=True, timeout=300, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines()[-1], json.loads(out.read_text(encoding="utf-8"))


def tamper(model: Path, tensor: str) -> None:
    """Set one tensor of a safetensors file to zero, in place."""
    with model.open("r+b") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        begin, end = json.loads(file.read(length))[tensor]["data_offsets"]
        file.seek(8 + length + begin)
        file.write(bytes(end - begin))


def test_a_right_merge_passes(stack_python: Path, made: Path) -> None:
    code, line, verdict = verify(stack_python, made, made / "merged")
    assert code == 0, line
    assert line.startswith("verify merge: ok: ")
    assert (verdict["schema"], verdict["ok"], verdict["dtype"]) == ("verify/1", True, "float32")
    assert verdict["max_rel_diff"] <= verdict["tolerance"] == 1e-4
    assert verdict["adapter_effect"] > 0.01  # the three steps changed something
    assert verdict["adapter_share"] == pytest.approx(1, abs=1e-3)
    assert verdict["argmax_agreement"] == 1
    assert len(verdict["prompts"]) == 3


def test_a_tampered_merge_fails(stack_python: Path, made: Path, tmp_path: Path) -> None:
    tampered = shutil.copytree(made / "merged", tmp_path / "tampered")
    tamper(tampered / "model.safetensors", "model.layers.1.self_attn.v_proj.weight")
    code, line, verdict = verify(stack_python, made, tampered, "--prompt", "昇腾")
    assert code == 1
    assert "not the model that was trained" in line
    assert verdict["ok"] is False
    assert verdict["max_rel_diff"] > verdict["tolerance"]
    assert verdict["prompts"] == ["昇腾"]


def test_the_untouched_base_fails_whatever_the_tolerance(stack_python: Path, made: Path) -> None:
    code, line, verdict = verify(stack_python, made, made / "base", "--tolerance", "10")
    assert code == 1
    assert "0.00 of the adapter's effect was merged" in line
    assert verdict["adapter_share"] == pytest.approx(0, abs=1e-6)


def test_what_cannot_be_loaded_fails_and_is_named(stack_python: Path, made: Path, tmp_path: Path) -> None:
    cut = shutil.copytree(made / "merged", tmp_path / "cut")
    with (cut / "model.safetensors").open("r+b") as file:
        file.truncate(10_000)
    code, line, verdict = verify(stack_python, made, cut)
    assert code == 1
    assert f"{cut}: does not load" in line
    assert (verdict["ok"], verdict["max_rel_diff"]) == (False, None)


def test_what_is_no_model_and_a_lost_base_are_told_apart(
    stack_python: Path, made: Path, tmp_path: Path
) -> None:
    assert "no config.json" in verify(stack_python, made, tmp_path)[1]
    line = verify(stack_python, made, made / "merged", "--base", str(tmp_path))[1]
    assert f"{tmp_path}: does not load" in line
