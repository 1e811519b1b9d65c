"""What a manifest says, and how files are named in it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import plan_of
from runner.core.inputs import flags_of, named_inputs
from runner.core.manifest import Asked, begun, digest, manifest_text, plan_text, sealed, seeds
from runner.core.secrecy import HIDDEN, public, without_credentials
from runner.core.sizes import size_text
from runner.store.folders import RunFolder
from runner.store.hashes import Hashes, entries, same
from runner.store.manifest import begin_manifest
from runner.store.snapshot import git_state, snapshot
from runner.store.usage import disk_use

TRAIN = """
name: lineage
env: {HCCL_DETERMINISTIC: "true", HF_TOKEN: abc}
steps:
  - name: train
    kind: sft
    args:
      model: Qwen/Qwen3-0.6B
      model_revision: v1
      dataset: [data/a.jsonl#100, hf::org/set:sub#7, ./more]
      seed: 7
      external_plugins: [plug.py]
  - {name: merge, kind: merge, args: {adapters: "${{ steps.train.checkpoint }}"}}
  - {name: fetch, kind: download, model: org/base, hub: huggingface, revision: abc}
  - {name: shell, kind: command, command: [cat, ./secret]}
"""


def test_inputs_are_what_commands_name_and_the_run_does_not_make() -> None:
    found = {(n.step, n.flag, n.path): n for n in named_inputs(plan_of(TRAIN))}
    assert list(found) == [
        ("train", "model", "Qwen/Qwen3-0.6B"),
        ("train", "dataset", "data/a.jsonl"),
        ("train", "dataset", "hf::org/set:sub"),
        ("train", "dataset", "./more"),
        ("train", "external_plugins", "plug.py"),
        ("fetch", "model", "org/base"),
    ]
    model = found["train", "model", "Qwen/Qwen3-0.6B"]
    assert (model.id, model.hub, model.revision) == ("Qwen/Qwen3-0.6B", "modelscope", "v1")
    part = found["train", "dataset", "hf::org/set:sub"]
    assert (part.id, part.hub, part.text) == ("org/set", "huggingface", "hf::org/set:sub#7")
    assert found["train", "dataset", "./more"].is_path
    fetched = found["fetch", "model", "org/base"]
    assert (fetched.hub, fetched.revision) == ("huggingface", "abc")


def test_flags_of_all_forms() -> None:
    argv = ["swift", "sft", "--a", "1", "2", "--lr=-1e-05", "--some-flag", "--b", "-1", "--c=x=y"]
    assert flags_of(argv) == {"a": ["1", "2"], "lr": ["-1e-05"], "some_flag": [], "b": ["-1"], "c": ["x=y"]}


def test_a_manifest_holds_no_secret_and_is_the_same_for_the_same_input() -> None:
    plan = plan_of(TRAIN)
    said = {"sets": ["api_key=hunter2", "url=http://me:pw@host/x", "n=1"], "stack": None, "offline": True}
    inherited = {"HF_TOKEN": "hunter2", "HTTPS_PROXY": "http://u:pw@p", "LCCL_DETERMINISTIC": "1", "FOO": "x"}
    asked = Asked("lineage", "job.yaml", "text", plan, params={"token": "hunter2", "lr": 1e-4}, said=said,
                  inherited=inherited)  # fmt: skip
    manifest = begun(asked, [])
    text = manifest_text(manifest)
    assert "hunter2" not in text and "pw@" not in text
    assert text == manifest_text(begun(asked, []))
    assert manifest["variables"]["inherited"] == {"HF_TOKEN": HIDDEN, "LCCL_DETERMINISTIC": "1"}
    assert manifest["variables"]["steps"]["train"]["HCCL_DETERMINISTIC"] == "true"
    assert manifest["variables"]["steps"]["train"]["HF_TOKEN"] == HIDDEN
    assert manifest["sets"] == [f"api_key={HIDDEN}", "url=http://host/x", "n=1"]
    assert manifest["params"] == {"token": HIDDEN, "lr": 1e-4}
    assert manifest["plan"]["sha256"] == hashlib.sha256(plan_text(plan).encode()).hexdigest()
    assert manifest["spec"] == {"sha256": digest("text"), "text": "text"}


def test_seeds_are_those_given_and_null_otherwise() -> None:
    given_seeds = {"train": {"seed": 7, "data_seed": None}, "merge": {"seed": None, "data_seed": None}}
    assert seeds(plan_of(TRAIN)) == given_seeds


@pytest.mark.parametrize("name", ["HF_TOKEN", "token", "MY-API-KEY", "aws_secret_access_key", "db.password"])
def test_hidden_by_name(name: str) -> None:
    assert public({name: "x"}) == {name: HIDDEN}


@pytest.mark.parametrize("name", ["max_new_tokens", "eos_token", "token_file", "monkey", "author"])
def test_not_hidden(name: str) -> None:
    assert public({name: 3}) == {name: 3}


@given(st.text(alphabet="abc:/@.", max_size=30))
def test_an_address_has_no_credentials_left(text: str) -> None:
    once = without_credentials(f"https://{text}@host/path")
    assert without_credentials(once) == once
    assert once.startswith("https://")


def test_sealing_replaces_what_the_end_knows_better() -> None:
    assert sealed({"a": 1, "inputs": [1]}, {"inputs": [2], "state": "FAILED"}) == {
        "a": 1, "inputs": [2], "state": "FAILED",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_048_575, "1.0 MiB"), (15_247_000_000, "14.2 GiB"),
     (5 << 50, "5120.0 TiB"), (None, "")],
)  # fmt: skip
def test_sizes_for_people(size: int | None, text: str) -> None:
    assert size_text(size) == text


def test_odd_files_have_a_reason_in_place_of_a_hash(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"abc")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(folder / "sock"))
    (folder / "loop").symlink_to("loop")
    (folder / "gone").symlink_to("nowhere")
    (folder / "up").symlink_to("..")
    (folder / "same").symlink_to("a.bin")
    (folder / "sub" / "b").write_bytes(b"")
    (folder / os.fsdecode(b"\xff")).write_bytes(b"x")
    known = Hashes(tmp_path / "hashes.json")
    found = {e["path"]: known.hashed(folder / e["path"], e) for e in entries(folder, 100, follow=True)}
    sha = hashlib.sha256(b"abc").hexdigest()
    assert found["a.bin"]["sha256"] == found["same"]["sha256"] == sha
    assert found["sub/b"]["size"] == 0
    assert found["fifo"] == {"path": "fifo", "error": "is a FIFO"}
    assert found["sock"]["error"] == "is a socket"
    assert "too many levels" in found["loop"]["error"]
    assert "no such file" in found["gone"]["error"]
    assert found["up"] == {"path": "up", "link": ".."}
    assert found["\udcff"]["size"] == 1
    assert json.loads(manifest_text({"x": list(found.values())}))["x"] == list(found.values())
    kept = {e["path"]: e for e in entries(folder, 100, follow=False)}
    assert kept["same"] == {"path": "same", "link": "a.bin"}
    assert entries(Path("/dev/zero"), 9, follow=True) == [{"path": ".", "error": "is a device"}]
    assert "no such file" in entries(folder / "nothing", 9, follow=True)[0]["error"]
    assert [e["path"] for e in entries(folder, 2, follow=True)][-1] == "..."


def test_a_file_that_vanishes_or_becomes_a_fifo_is_an_entry_still(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1")
    (was,) = entries(file, 9, follow=True)
    file.unlink()
    known = Hashes(tmp_path / "hashes.json")
    assert "no such file" in known.hashed(file, was)["error"]
    os.mkfifo(file)
    assert known.hashed(file, was)["error"] == "changed while it was read"
    assert not same(was, entries(file, 9, follow=True)[0])


def test_a_large_file_is_read_once_whatever_its_names(tmp_path: Path) -> None:
    file, link = tmp_path / "big", tmp_path / "link"
    file.write_bytes(b"x" * (2 << 20))
    old = time.time() - 100
    os.utime(file, (old, old))
    link.symlink_to(file)
    (was,) = entries(file, 9, follow=True)
    first = Hashes(tmp_path / "hashes.json")
    digest_of = first.hashed(file, was)["sha256"]
    first.save()
    facts = file.stat()
    with file.open("r+b") as f:  # other bytes at the same size and time: only who reads it again would know
        f.write(b"y")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    again = Hashes(tmp_path / "hashes.json")
    assert again.hashed(link, entries(link, 9, follow=True)[0])["sha256"] == digest_of
    os.utime(file, (old + 5, old + 5))
    assert again.hashed(file, entries(file, 9, follow=True)[0])["sha256"] != digest_of


def test_a_torn_memory_of_hashes_is_no_error(tmp_path: Path) -> None:
    for text in ("{", '{"files": 3, "environments": []}', '{"files": {"%s": [1]}}' % (tmp_path / "f")):
        (tmp_path / "hashes.json").write_text(text)
        (tmp_path / "f").write_bytes(b"abc")
        known = Hashes(tmp_path / "hashes.json")
        (entry,) = entries(tmp_path / "f", 9, follow=True)
        assert known.hashed(tmp_path / "f", entry)["sha256"] == hashlib.sha256(b"abc").hexdigest()
        known.save()


def test_disk_use_counts_blocks_and_each_file_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    empty = disk_use(folder)
    (folder / "a").write_bytes(b"x" * 8192)
    (folder / "b").hardlink_to(folder / "a")
    outside = tmp_path / "outside"
    outside.write_bytes(b"x" * (1 << 20))
    (folder / "link").symlink_to(outside)
    with (folder / "sparse").open("wb") as f:
        f.truncate(1 << 30)
    assert empty + 8192 <= disk_use(folder) <= empty + 8192 + 3 * 4096
    assert disk_use(tmp_path / "nothing") == 0


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_git_state_is_commit_patch_and_an_address_without_a_password(tmp_path: Path) -> None:
    work = tmp_path / "repo" / "jobs"
    work.mkdir(parents=True)
    assert git_state(work) is None
    git_state.cache_clear()
    git(work.parent, "init", "-b", "main")
    git(work.parent, "remote", "add", "origin", "https://me:secret@example.com/x.git")
    (work / "a.txt").write_text("one\n")
    (work / "b.bin").write_bytes(bytes(range(256)))
    empty = git_state(work)
    assert empty is not None and empty.facts["commit"] is None
    git_state.cache_clear()
    git(work, "add", ".")
    git(work, "commit", "-m", "first")
    clean = git_state(work)
    assert clean is not None and clean.facts["dirty"] is False and clean.patch == b""
    assert clean.facts["branch"] == "main" and clean.facts["remote"] == "https://example.com/x.git"
    git_state.cache_clear()
    (work / "a.txt").write_text("two\n")
    (work / "b.bin").write_bytes(bytes(reversed(range(256))))
    config = work.parent / ".git" / "config"
    bad = f'[diff]\n external = touch {tmp_path}/ran\n[core]\n fsmonitor = "touch {tmp_path}/ran"\n'
    config.write_text(config.read_text() + bad)
    dirty = git_state(work)
    assert dirty is not None and dirty.facts["dirty"] is True
    assert b"-one\n+two" in dirty.patch and b"GIT binary patch" in dirty.patch
    assert not (tmp_path / "ran").exists()
    git_state.cache_clear()
    (work.parent / ".git" / "HEAD").write_text("rubbish")
    broken = git_state(work)
    assert broken is not None and "git status ended with exit code" in broken.facts["error"]
    git_state.cache_clear()


def test_many_submits_of_one_folder_ask_git_once_and_cost_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    (work / "data").mkdir(parents=True)
    (work / "data" / "a.jsonl").write_text("{}\n")
    git(work, "init")
    (tmp_path / "bin").mkdir()
    spy = tmp_path / "bin" / "git"
    spy.write_text(f'#!/bin/sh\necho x >> {tmp_path}/calls\nexec /usr/bin/env -u PATH /usr/bin/git "$@"\n')
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    plan = plan_of(TRAIN)
    times = []
    for n in range(1, 201):
        folder = RunFolder(tmp_path / "home" / "runs" / f"{n:06d}")
        folder.path.mkdir(parents=True)
        linked = snapshot(work, folder.snapshot)
        start = time.perf_counter()
        begin_manifest(folder, Asked("x", "job.yaml", TRAIN, plan), work, linked)
        times.append(time.perf_counter() - start)
    assert len((tmp_path / "calls").read_text().split()) <= 3
    assert sorted(times)[100] < 0.01
    manifest = json.loads((tmp_path / "home" / "runs" / "000200" / "manifest.json").read_text())
    local = [i for i in manifest["inputs"] if "at" in i]
    assert [i["at"] for i in local] == [
        str(folder.snapshot / "data" / "a.jsonl"), str(folder.snapshot / "more"),
    ]  # fmt: skip
    assert local[0]["files"][0]["size"] == 3 and "no such file" in local[1]["files"][0]["error"]


def test_a_run_anew_keeps_the_commit_of_the_first(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init")
    (work / "a").write_text("1")
    git(work, "add", "a")
    git(work, "commit", "-m", "one")
    (work / "a").write_text("2")
    first, second = (RunFolder(tmp_path / "home" / "runs" / n) for n in ("000001", "000002"))
    plan = plan_of(TRAIN)
    for folder, source in ((first, work), (second, first.snapshot)):
        linked = snapshot(source, folder.snapshot)
        begin_manifest(folder, Asked("x", "job.yaml", "", plan), source, linked)
    told = [json.loads((f.path / "manifest.json").read_text())["snapshot"]["git"] for f in (first, second)]
    assert told[0] == told[1] and told[0]["dirty"] is True
    assert (
        (first.path / "snapshot.patch").read_bytes() == (second.path / "snapshot.patch").read_bytes() != b""
    )
