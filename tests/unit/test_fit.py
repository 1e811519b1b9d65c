"""Whether the checkpoints of a job will fit, by what the files of its model say."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path

import pytest

from jobs import job_of
from runner.core.fit import (
    ModelFacts,
    Space,
    checkpoint_bytes,
    fit_findings,
    kept_checkpoints,
    needs_of,
)
from runner.core.inputs import flags_of
from runner.store.modelfacts import free_space, model_facts, model_folder

GIB = 1 << 30
SEVEN_B = ModelFacts(weights=14 * GIB, others=8 << 20, parameters=7 * GIB, width=2)
# jobs/tiny/make_tiny.py's model, and what ms-swift 4.6.0 wrote as checkpoints of it on the CPU
TINY = ModelFacts(
    weights=2_364_984, others=40_913, parameters=590_592, width=4,
    matrices=(
        *(
            (f"model.layers.{i}.{name}", rows, columns)
            for i in range(2)
            for name, rows, columns in (
                ("self_attn.q_proj", 128, 128), ("self_attn.k_proj", 64, 128), ("self_attn.v_proj", 64, 128),
                ("self_attn.o_proj", 128, 128), ("mlp.gate_proj", 384, 128), ("mlp.up_proj", 384, 128),
                ("mlp.down_proj", 128, 384),
            )
        ),
        ("model.embed_tokens", 768, 128), ("lm_head", 768, 128),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "real"),
    [
        ("--tuner_type full --torch_dtype float32", 7_196_468),
        ("--tuner_type full --torch_dtype bfloat16", 3_653_153),
        ("--tuner_type full --torch_dtype float32 --save_only_model true", 2_434_690),
        ("--torch_dtype float32 --lora_rank 16 --target_modules all-linear", 1_011_486),
        ("--torch_dtype bfloat16", 544_479),
        ("--target_modules q_proj v_proj", 145_148),
        ("--modules_to_save embed_tokens lm_head", 2_905_662),
    ],
)
def test_the_estimate_is_what_ms_swift_really_writes(flags: str, real: int) -> None:
    assert checkpoint_bytes(TINY, flags_of(flags.split())) == pytest.approx(real, rel=0.05)


@pytest.mark.parametrize(
    ("flags", "width"),  # bytes for each parameter
    [
        ("--tuner_type full", 2 + 4),
        ("--tuner_type full --torch_dtype float32", 4 + 8),
        ("--tuner_type full --deepspeed zero2", 2 + 14),
        ("--tuner_type full --deepspeed zero3", 2 + 12),
        ("--tuner_type full --optim adamw_8bit", 2 + 2),
        ("--tuner_type full --save_only_model true --deepspeed zero3", 2),
    ],
)
def test_bytes_of_a_full_checkpoint(flags: str, width: int) -> None:
    got = checkpoint_bytes(SEVEN_B, flags_of(flags.split()))
    assert got == pytest.approx(7 * GIB * width, rel=0.01)


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        ("", 2),
        ("--save_total_limit 3", 4),
        ("--max_steps 100 --save_steps 30", 4),
        ("--max_steps 100 --save_steps 30 --save_total_limit 2", 3),
        ("--max_steps 40 --save_steps 30 --save_total_limit 2", 2),
        ("--max_steps 100 --save_steps 0.25", 4),
        ("--save_strategy epoch --num_train_epochs 5", 5),
        ("--save_strategy epoch", 3),
        ("--save_strategy no", 0),
        ("--train_iters 1000 --save_steps 100", 10),
        ("--save_steps nonsense", 2),
    ],
)
def test_checkpoints_at_once(flags: str, count: int) -> None:
    assert kept_checkpoints(flags_of(flags.split())) == count


JOB = """
name: full
steps:
  - name: train
    kind: sft
    args: {model: /models/seven, tuner_type: full, save_total_limit: 2}
  - {name: merge, kind: merge, args: {adapters: "${{ steps.train.checkpoint }}"}}
"""


def seven(name: str) -> ModelFacts | None:
    return SEVEN_B if name == "/models/seven" else None


def test_the_warning_has_the_numbers_and_the_place() -> None:
    job = job_of(JOB)
    (found,) = fit_findings(job, seven, lambda where: Space(1, "/disk", 12 * GIB))
    assert (found.code, found.severity, found.line) == ("disk", "warning", 6)
    assert found.message == (
        "step 'train' writes about 3 checkpoints of 42.0 GiB = 126.0 GiB; step 'merge' writes about 14.0 GiB"
        " for the whole model, together 140.0 GiB, and 12.0 GiB are free at /disk"
    )
    assert found.hint is not None and "save_total_limit" in found.hint and "RUNNER_HOME" in found.hint


def test_nothing_is_said_when_it_fits_or_too_little_is_known() -> None:
    job = job_of(JOB)
    assert fit_findings(job, seven, lambda where: Space(1, "/disk", 141 * GIB)) == []
    assert fit_findings(job, lambda name: None, lambda where: Space(1, "/disk", 0)) == []
    assert fit_findings(job, seven, lambda where: None) == []


def test_another_disk_is_another_sum() -> None:
    text = JOB.replace("save_total_limit: 2", "save_total_limit: 2, output_dir: /big")

    def space(where: str | None) -> Space:
        return Space(2, "/big", 500 * GIB) if where == "/big" else Space(1, "/small", GIB)

    (found,) = fit_findings(job_of(text), seven, space)
    assert "step 'train'" not in found.message and "1.0 GiB are free at /small" in found.message


def test_a_model_is_followed_through_the_steps_that_hand_it_on() -> None:
    text = """
name: chain
steps:
  - {name: fetch, kind: download, model: org/seven}
  - {name: train, kind: sft, args: {model: "${{ steps.fetch.model }}", tuner_type: full, save_strategy: "no"}}
  - {name: merge, kind: merge, args: {adapters: "${{ steps.train.checkpoint }}"}}
  - {name: more, kind: sft, args: {model: "${{ steps.merge.model }}", tuner_type: full, max_steps: 1}}
  - {name: made, kind: sft, args: {model: "${{ steps.fetch.path }}/x", tuner_type: full}}
"""
    needs = needs_of(job_of(text), lambda name: SEVEN_B if name == "org/seven" else None)
    assert [(n.step, n.count) for n in needs] == [("merge", 1), ("more", 1)]


def test_megatron_writes_the_merged_model_beside_its_adapter() -> None:
    flags = flags_of(["--tuner_type", "lora"])
    assert checkpoint_bytes(TINY, flags, megatron=True) > TINY.weights
    off = flags_of(["--tuner_type", "lora", "--merge_lora", "false"])
    assert checkpoint_bytes(TINY, off, megatron=True) < TINY.weights


def write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int]]]) -> None:
    head = json.dumps({n: {"dtype": d, "shape": s, "data_offsets": [0, 0]} for n, (d, s) in tensors.items()})
    path.write_bytes(struct.pack("<Q", len(head)) + head.encode() + b"\0" * 4096)


def test_facts_come_from_the_heads_of_all_shards(tmp_path: Path) -> None:
    one, two = tmp_path / "model-00001-of-00002.safetensors", tmp_path / "model-00002-of-00002.safetensors"
    write_safetensors(one, {"a.q_proj.weight": ("BF16", [4, 8]), "a.norm.weight": ("F32", [8])})
    write_safetensors(two, {"a.experts.weight": ("BF16", [2, 4, 8])})
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "other.gguf").write_bytes(b"x" * 99_999)
    facts = model_facts(tmp_path)
    assert facts is not None
    assert (facts.parameters, facts.width, facts.matrices) == (32 + 8 + 64, 2, (("a.q_proj", 4, 8),))
    assert facts.weights == one.stat().st_size + two.stat().st_size and facts.others == 2


@pytest.mark.parametrize(
    "head", [b"", b"\xff" * 64, struct.pack("<Q", 9) + b"[1, 2, 3]", struct.pack("<Q", 2) + b"{"]
)
def test_torn_weights_are_no_error(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(head)
    facts = model_facts(tmp_path)
    assert facts is None or facts.matrices == ()


def test_weights_without_heads_count_by_the_type_in_the_config(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\0" * 4096)
    (tmp_path / "config.json").write_text('{"torch_dtype": "float32"}')
    facts = model_facts(tmp_path)
    assert facts is not None and (facts.parameters, facts.width) == (1024, 4)


def test_models_are_found_in_folders_and_caches(tmp_path: Path) -> None:
    scope, face, base = tmp_path / "ms", tmp_path / "hf", tmp_path / "base"
    cached = scope / "models/Qwen/Qwen2___5-7B", face / "hub/models--org--m/snapshots/abc"
    for folder in (*cached, base / "own"):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")

    def found(name: str) -> Path | None:
        return model_folder(name, base, scope, face)

    assert found("Qwen/Qwen2.5-7B") == cached[0]
    assert found("org/m") == found("hf::org/m") == cached[1]
    assert found("./own") == base / "./own"
    for name in ("org/other", "nothing", "/no/where", "~nobody/x", "a" * 5000, "a/b/c", ""):
        assert found(name) in (None, base), name


def test_space_is_that_of_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    space = free_space(tmp_path / "not" / "there")
    assert space is not None and space.at == str(tmp_path) and space.free > 0


def test_no_local_model_costs_next_to_nothing(tmp_path: Path) -> None:
    job = job_of(JOB.replace("/models/seven", "Qwen/Qwen3-8B"))

    def look(name: str) -> ModelFacts | None:
        folder = model_folder(name, tmp_path, tmp_path / "ms", tmp_path / "hf")
        return model_facts(folder) if folder else None

    took = []
    for _ in range(5):
        start = time.perf_counter()
        assert fit_findings(job, look, lambda where: free_space(tmp_path)) == []
        took.append(time.perf_counter() - start)
    assert min(took) < 0.005
