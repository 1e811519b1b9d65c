"""`runner check`, `plan`, `site` and `stack` as processes, on good and hostile input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time

import pytest
from cli import Cli

HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "only comments": b"# nothing\n",
    "a list": b"- a\n- b\n",
    "broken yaml": b"name: x\nsteps: [{name: a\n",
    "tab": b"name: x\n\tkind: command\n",
    "not utf-8": "name: 模型\n".encode("gbk"),
    "nul": b"name: x\0y\n",
    "duplicate key": b"name: x\nname: y\nkind: command\ncommand: [a]\n",
    "huge": b"name: " + b"x" * 10_000_000,
    "deep": b"name: x\nargs: " + b"[" * 5000 + b"]" * 5000,
    "alias bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(98, 107)),
    "self alias": b"name: &a [*a]\nkind: command\n",
    "python tag": b"name: !!python/object/apply:os.system ['true']\n",
    "two documents": b"name: x\n---\nname: y\n",
    "wrong expression": b"name: x\nkind: command\ncommand: ['${{ params.', '${{ nope.x }}']\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_an_error_with_a_place(cli: Cli, name: str) -> None:
    path = cli.work / f"作业 {name}.yaml"
    path.write_bytes(HOSTILE[name])
    began = time.monotonic()
    done = cli("check", path, code=2, timeout=20)
    assert time.monotonic() - began < 5
    assert path.name in done.stderr
    for found in json.loads(cli("check", path, "--json", code=2).stdout)["findings"]:
        assert set(found) == {"file", "line", "col", "path", "code", "severity", "message", "hint"}


def test_mistyped_flag_is_found_at_once(cli: Cli) -> None:
    job = "name: x\nstack: swift-4.3-cann9.0\nsteps:\n  - name: train\n    kind: sft\n    args:\n"
    path = cli.job(job + "      model: a/b\n      lora_rnk: 8\n")
    took = []
    for _ in range(3):
        began = time.monotonic()
        done = cli("check", "job.yaml", code=2)
        took.append(time.monotonic() - began)
    first, excerpt, *_ = done.stderr.splitlines()
    assert (
        first == "job.yaml:8:7: ms-swift 4.3 has no argument 'lora_rnk' for sft - did you mean 'lora_rank'?"
    )
    assert "model: a/b" in excerpt
    assert min(took) < 1.5, "0.35 s where Python may keep its compiled files"
    assert path.exists()


def test_missing_local_file_is_said(cli: Cli) -> None:
    job = cli.job("name: x\nkind: sft\nargs: {model: ./nowhere, dataset: [rows.jsonl, a/b]}\n")
    said = cli("check", job, code=2).stderr
    assert "no file or folder './nowhere'" in said
    assert "no file or folder 'rows.jsonl'" in said


def test_offline_says_what_is_not_in_the_cache(cli: Cli) -> None:
    job = cli.job("name: x\nkind: sft\nargs: {model: some/model}\n")
    cli("check", job)
    for args in (["check", job, "--offline"], ["check", job]):
        (cli.home).mkdir(exist_ok=True)
        (cli.home / "site.yaml").write_text("offline: true\n")
        said = cli(*args, code=2, HOME=str(cli.work), MODELSCOPE_CACHE="", HF_HOME="").stderr
        assert "model 'some/model' is not in the cache" in said


def test_site_file_is_made_shown_and_checked(cli: Cli) -> None:
    cli("site", "init")
    cli("site", "show")
    assert cli("site", "init", code=2).stderr
    (cli.home / "site.yaml").write_text("ofline: true\n")
    said = cli("site", "show", code=2).stderr
    assert "site.yaml:1:1: unknown key 'ofline' - did you mean 'offline'?" in said
    (cli.home / "site.yaml").write_text("stack: cpu\n")
    assert cli.json("site", "show")["site"]["stack"] == "cpu"


def test_plan_is_text_or_json_and_the_same_each_time(cli: Cli) -> None:
    job = cli.job("name: x\nparams: {w: a}\nkind: command\ncommand: [echo, '${{ params.w }}']\n")
    assert "  echo b" in cli("plan", job, "--set", "w=b").stdout
    plan = cli("plan", job, "--json").stdout
    assert json.loads(plan)["plan"] == "plan/1"
    assert cli("plan", job, "--json").stdout == plan


def test_stacks_are_listed_and_an_unknown_one_is_refused(cli: Cli) -> None:
    names = [s["stack"] for s in cli.json("stack", "list")["stacks"]]
    assert {"cpu", "swift-4.3-cann9.0", "swift-4.5-cann9.1"} <= set(names)
    assert "needs CANN" in cli("stack", "install", "swift-4.3-cann9.0", code=2).stderr
    job = cli.job("name: x\nstack: swift-4.3-cann9\nkind: command\ncommand: ['true']\n")
    assert (
        "job.yaml:2:8: there is no stack 'swift-4.3-cann9' - did you mean" in cli("check", job, code=2).stderr
    )


@pytest.mark.slow
def test_no_network_is_said_with_the_way_out(cli: Cli) -> None:
    nowhere = {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_RETRIES": "0",
    }
    shutil.rmtree(cli.home / "stacks", ignore_errors=True)
    done = cli("stack", "install", "cpu", code=3, timeout=120, PIP_FIND_LINKS="", **nowhere)
    assert "up to 7 GB on disk" in done.stderr, "a CUDA build's size is said before it is fetched"
    assert "the package index cannot be reached" in done.stderr
    assert "PIP_FIND_LINKS" in done.stderr.splitlines()[-1]
    cli("stack", "path", "cpu", code=3)


def test_too_little_disk_is_said(cli: Cli) -> None:
    shutil.rmtree(cli.home / "stacks", ignore_errors=True)
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    (cli.home / "stacks").mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", cli.home / "stacks"], check=True)
    try:
        assert "installing takes 4.3 GB" in cli("stack", "install", "cpu", code=3).stderr
    finally:
        subprocess.run(["umount", cli.home / "stacks"], check=True)
