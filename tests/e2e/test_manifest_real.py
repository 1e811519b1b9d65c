"""What a real run leaves in its manifest: what went in, what was installed, what came out."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from cli import Cli

from runner.core.fit import checkpoint_bytes
from runner.core.inputs import flags_of
from runner.store.modelfacts import model_facts
from runner.store.usage import disk_use

ROOT = Path(__file__).parents[2]


def sealed(cli: Cli, run: int = 1) -> dict[str, Any]:
    """The manifest, when the agent has completed it."""
    cli.wait_until_idle(60)
    manifest: dict[str, Any] = json.loads((cli.folder(run) / "manifest.json").read_text())
    assert "sealed" in manifest
    return manifest


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_manifest_is_there_at_submit_and_complete_at_the_end(cli: Cli) -> None:
    (cli.work / "data.jsonl").write_text("{}\n")
    big = cli.work / "big.bin"
    big.write_bytes(os.urandom(17 << 20))
    job = """
name: two
env: {HCCL_DETERMINISTIC: "true", MY_TOKEN: hunter2}
params: {n: 1}
steps:
  - name: make
    kind: command
    retry: {attempts: 2, backoff: 0.1}
    script: |
      [ "$MY_TOKEN" = hunter2 ]
      mkfifo "$RUNNER_OUTPUT/fifo"; ln -s /etc/passwd "$RUNNER_OUTPUT/link"; echo made > "$RUNNER_OUTPUT/file"
      mkdir "$RUNNER_OUTPUT/sub"; printf x > "$RUNNER_OUTPUT/sub/$(printf 'odd \\377')"
      test -e "$DIR/again" || { touch "$DIR/again"; exit 3; }
    env: {DIR: "${{ run.dir }}"}
"""
    cli("submit", "--hold", cli.job(job), "--set", "n=2")
    begun = json.loads((cli.folder() / "manifest.json").read_text())
    assert begun["schema"] == "manifest/1" and "state" not in begun
    assert begun["sets"] == ["n=2"] and begun["params"] == {"n": 2}
    assert begun["spec"]["text"] == job and begun["spec"]["sha256"] == sha256(cli.folder() / "job.yaml")
    assert begun["plan"]["sha256"] == sha256(cli.folder() / "plan.json")
    assert begun["host"]["hostname"] == os.uname().nodename
    assert begun["variables"]["steps"]["make"]["HCCL_DETERMINISTIC"] == "true"
    assert [(f["path"], f["size"]) for f in begun["snapshot"]["linked"]] == [("big.bin", 17 << 20)]
    assert not (cli.folder() / "snapshot.json").exists()
    cli("release", "1")
    cli("wait", "1")
    whole = sealed(cli)
    assert {k: whole[k] for k in ("spec", "plan", "params", "host")} == {
        k: begun[k] for k in ("spec", "plan", "params", "host")
    }
    (step,) = whole["steps"]
    assert whole["state"] == step["state"] == "SUCCEEDED"
    assert [(a["n"], a["code"]) for a in step["attempts"]] == [(1, 3), (2, 0)]
    made = {a["path"].removeprefix("steps/make/output/"): a for a in whole["artifacts"]}
    assert made["file"]["sha256"] == hashlib.sha256(b"made\n").hexdigest()
    assert made["sub/odd \udcff"]["sha256"] == hashlib.sha256(b"x").hexdigest()
    assert made["fifo"]["error"] == "is a FIFO"
    assert made["link"]["link"] == "/etc/passwd"
    assert whole["snapshot"]["linked"][0]["sha256"] == sha256(big)
    shown = cli.json("show")["run"]
    assert shown["sealed"] and abs(shown["bytes"] - disk_use(cli.folder())) < 64 << 10
    assert "hunter2" not in json.dumps({k: v for k, v in whole.items() if k != "spec"})


def test_an_input_that_changes_while_the_run_goes_on_is_named(cli: Cli) -> None:
    data = cli.work / "data.jsonl"
    data.write_text('{"messages": []}\n')
    model = cli.work / "model"
    model.mkdir()
    for name in ("config.json", "gone.txt"):
        (model / name).write_text("{}")
    job = f"""
name: reads
steps:
  - {{name: first, kind: command, command: [sleep, "60"]}}
  - name: infer
    kind: infer
    args: {{model: {json.dumps(str(model), ensure_ascii=False)}, val_dataset: data.jsonl}}
"""
    cli("submit", cli.job(job))
    (model / "config.json").write_text('{"other": 1}')
    (model / "gone.txt").unlink()
    (model / "new.txt").write_text("x")
    data.write_text("changed, and the run has its own copy")
    cli("stop", "1")
    whole = sealed(cli)
    assert sorted(whole["changed"]) == [str(model / n) for n in ("config.json", "gone.txt", "new.txt")]
    named, copied = (next(i for i in whole["inputs"] if i["at"] == str(at)) for at in
                     (model, cli.folder() / "snapshot" / "data.jsonl"))  # fmt: skip
    assert named["named"] == [{"step": "infer", "flag": "model", "text": str(model)}]
    hashes = {f["path"]: f.get("sha256") for f in named["files"]}
    assert hashes["config.json"] == sha256(model / "config.json") and hashes["gone.txt"] is None
    assert copied["files"][0]["sha256"] == hashlib.sha256(b'{"messages": []}\n').hexdigest()


def test_a_run_that_is_tried_again_is_sealed_again(cli: Cli) -> None:
    flag = cli.work / "flag"
    cli("submit", "--wait", cli.job(f"name: a\nkind: command\nscript: test -e '{flag}'\n"), code=1)
    assert sealed(cli)["state"] == "FAILED"
    flag.touch()
    cli("retry", "1")
    cli("wait", "1")
    again = sealed(cli)
    assert again["state"] == "SUCCEEDED" and len(again["steps"][0]["attempts"]) == 2


def test_a_torn_manifest_is_made_anew_from_the_folder(cli: Cli) -> None:
    cli("submit", "--hold", cli.job("name: torn\nkind: command\ncommand: ['true']\n"))
    (cli.folder() / "manifest.json").write_text('{"schema": "manif')
    cli("release")
    cli("wait")
    whole = sealed(cli)
    assert whole["state"] == "SUCCEEDED" and whole["host"] is None
    assert whole["plan"]["sha256"] == sha256(cli.folder() / "plan.json")


def test_commit_and_patch_of_the_jobs_tree_are_kept(cli: Cli) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=cli.work, check=True, capture_output=True)

    (cli.work / "train.py").write_text("old\n")
    git("init", "-b", "trunk")
    git("add", ".")
    git("commit", "-m", "first")
    (cli.work / "train.py").write_text("new\n")
    cli("submit", "--wait", cli.job("name: g\nkind: command\ncommand: ['true']\n"))
    told = sealed(cli)["snapshot"]["git"]
    assert told["branch"] == "trunk" and told["dirty"] is True and len(told["commit"]) == 40
    git("checkout", "train.py")
    subprocess.run(["git", "apply", cli.folder() / told["patch"]], cwd=cli.work, check=True)
    assert (cli.work / "train.py").read_text() == "new\n"


def test_a_warning_before_checkpoints_that_do_not_fit(cli: Cli, tiny_model: Path) -> None:
    """On a file system of 4 MiB; one checkpoint of this model takes 7."""
    small = cli.work / "small"
    small.mkdir()
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user cannot mount anything")
    (cli.work / "train.jsonl").write_text("{}\n")
    job = cli.job(
        f"name: f\nstack: cpu\nkind: sft\nargs:\n  model: {tiny_model}\n  dataset: [train.jsonl]\n"
        f"  tuner_type: full\n  output_dir: {json.dumps(str(small), ensure_ascii=False)}\n"
    )
    script = 'mount -t tmpfs -o size=4m none "$1" && exec "$2" check "$3"'
    words = ["unshare", "-m", "sh", "-c", script, "sh", small, cli.program, job]
    done = subprocess.run(words, env=cli.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "about 2 checkpoints of 6.9 MiB = 13.7 MiB, and 4.0 MiB are free at" in done.stderr
    assert "checkpoints" not in cli("check", job).stderr


@pytest.mark.swift
@pytest.mark.parametrize("tuner", ["full", "lora"])
def test_a_training_can_be_traced_by_hashes_and_its_size_was_foreseen(
    cli: Cli, tiny_model: Path, tuner: str
) -> None:
    (cli.work / "train.jsonl").write_bytes((ROOT / "jobs/tiny/train.jsonl").read_bytes())
    job = f"""
name: traced
stack: cpu
env: {{HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1"}}
steps:
  - name: train
    kind: sft
    args:
      {{model: {tiny_model}, model_type: qwen3, template: qwen3, dataset: [train.jsonl#8],
       tuner_type: {tuner}, split_dataset_ratio: 0, torch_dtype: float32, max_steps: 2, save_steps: 2,
       max_length: 128, seed: 11, dataset_num_proc: 1, dataloader_num_workers: 0, report_to: none,
       logging_steps: 1}}
"""
    cli("submit", "--wait", cli.job(job), timeout=300)
    whole = sealed(cli)
    model = next(i for i in whole["inputs"] if i["at"] == str(tiny_model))
    weights = next(f for f in model["files"] if f["path"] == "model.safetensors")
    assert weights["sha256"] == sha256(tiny_model / "model.safetensors")
    assert whole["changed"] == []
    assert whole["seeds"] == {"train": {"seed": 11, "data_seed": None}}
    assert whole["installed"]["ms_swift"] == whole["stack"]["pins"]["ms-swift"]
    assert whole["metrics"]["train"]["loss"] > 0
    checkpoint = whole["steps"][0]["outputs"]["checkpoint"]
    assert checkpoint == "steps/train/output/checkpoint-2"
    files = {a["path"]: a for a in whole["artifacts"] if a["path"].startswith(checkpoint)}
    for path, artifact in files.items():
        assert artifact["sha256"] == sha256(cli.folder() / path)
    facts = model_facts(tiny_model)
    assert facts is not None
    foreseen = checkpoint_bytes(facts, flags_of(["--tuner_type", tuner, "--torch_dtype", "float32"]))
    assert foreseen == pytest.approx(sum(a["size"] for a in files.values()), rel=0.06)


def test_sealing_a_large_output_hinders_nobody(cli: Cli) -> None:
    """The next run goes on while the last one is hashed."""
    cli("submit", cli.job("name: big\nkind: command\nscript: head -c 400m /dev/zero > $RUNNER_OUTPUT/big\n"))
    cli("wait", timeout=60)
    start = time.monotonic()
    cli("submit", "--wait", cli.job("name: next\nkind: command\ncommand: ['true']\n"))
    assert time.monotonic() - start < 5
    assert sealed(cli)["artifacts"][0]["size"] == 400 << 20
