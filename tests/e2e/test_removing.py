"""`runner rm` and `runner gc`: what they take, what they leave, and what an interruption leaves behind."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from cli import Cli

DAY = 86_400
QUICK = "name: quick\nkind: command\nscript: head -c 3m /dev/zero > $RUNNER_OUTPUT/big\n"


def run_once(cli: Cli, text: str = QUICK, code: int = 0) -> int:
    cli("submit", "--wait", cli.job(text), code=code)
    cli.wait_until_idle(20)  # also the agent's last look at it
    return int(cli.json("ps", "--all")["runs"][0]["id"])


def known(cli: Cli) -> list[int]:
    return [r["id"] for r in cli.json("ps", "--all")["runs"]]


def made_older(cli: Cli, run: int, days: float) -> None:
    with sqlite3.connect(cli.home / "state.db") as db:
        ago = time.time() - days * DAY
        db.execute("UPDATE runs SET ended = CASE WHEN ended IS NULL THEN NULL ELSE ? END, created = ?"
                   " WHERE id = ?", (ago, ago, run))  # fmt: skip
    if cli.folder(run).is_dir():
        os.utime(cli.folder(run), (ago, ago))
    db.close()


def left(cli: Cli) -> list[str]:
    return sorted(p.name for p in (cli.home / "runs").iterdir())


def test_rm_takes_the_folder_and_the_row_and_says_what_came_free(cli: Cli) -> None:
    run_once(cli)
    run_once(cli)
    said = cli("rm", "1").stdout
    assert said.startswith("removed 1 quick; freed 3.") and "MiB" in said
    assert known(cli) == [2] and left(cli) == ["000002"]
    assert cli("show", "1", code=4)
    assert cli.json("rm", "quick")["runs"] == [2]
    assert left(cli) == []
    assert "there is no run" in cli("rm", "2", code=4).stderr
    assert run_once(cli) == 3  # a number is never given twice


def test_a_run_that_goes_on_stays_and_so_do_those_named_with_it(cli: Cli) -> None:
    run_once(cli)
    cli("submit", cli.job("name: long\nkind: command\ncommand: [sleep, '60']\n"))
    assert "`runner stop 2` ends it" in cli("rm", "1", "2", code=2).stderr
    assert known(cli) == [2, 1] and left(cli) == ["000001", "000002"]
    cli("stop", "2")
    cli("rm", "2", "1")
    assert left(cli) == []


def test_what_lies_outside_of_the_folder_stays(cli: Cli) -> None:
    run_once(cli)
    outside = cli.work / "precious"
    (outside / "sub").mkdir(parents=True)
    (outside / "sub" / "file").write_text("here")
    folder = cli.folder()
    (folder / "link").symlink_to(outside)
    (folder / "file-link").symlink_to(outside / "sub" / "file")
    (folder / "steps" / "again").symlink_to(folder.parent)
    (folder / "steps" / "hard").hardlink_to(outside / "sub" / "file")
    (folder / "steps").rename(outside / "steps")
    (folder / "steps").symlink_to(outside / "steps")
    mode = outside.stat().st_mode
    cli("rm", "1")
    assert left(cli) == []
    assert (outside / "sub" / "file").read_text() == "here" and outside.stat().st_mode == mode
    assert (outside / "steps" / "again").is_symlink()


def test_a_run_folder_that_is_a_link_is_refused(cli: Cli) -> None:
    run_once(cli)
    elsewhere = cli.work / "elsewhere"
    cli.folder().rename(elsewhere)
    cli.folder().symlink_to(elsewhere)
    assert "is a link" in cli("rm", "1", code=2).stderr
    assert known(cli) == [1] and (elsewhere / "plan.json").exists()
    cli.folder().unlink()
    cli("rm", "1")
    assert known(cli) == [] and (elsewhere / "plan.json").exists()


def test_odd_things_are_taken_too(cli: Cli) -> None:
    run_once(cli)
    folder = cli.folder()
    deep = os.open(folder, os.O_RDONLY)
    for _ in range(1500):  # far longer than a path may be
        os.mkdir("deeper", dir_fd=deep)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=deep))
    os.close(deep)
    os.mkfifo(folder / "fifo")
    (folder / os.fsdecode(b"\xff\xfe")).write_text("x")
    (folder / "loop").symlink_to("loop")
    cli("rm", "1")
    assert left(cli) == []


AS_NOBODY = """
import encodings.latin_1, encodings.unicode_escape, os, sys
from pathlib import Path
from runner.store.db import Store
from runner.store.remove import finish
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
store = Store(Path(sys.argv[1]))
print(finish(store))
store.close()
"""


def test_read_only_folders_are_no_obstacle_for_who_owns_them() -> None:
    """As a user for whom permissions count, not as root."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        home = Path(name)
        folder = home / "runs" / "000001"
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "file").write_text("x")
        (home / "runs" / ".removing-000001").mkdir()
        for path in (home, *home.rglob("*")) if os.getuid() == 0 else ():
            os.chown(path, 65534, 65534)
        for path, mode in (
            (folder / "a/b/file", 0),
            (folder / "a/b", 0o500),
            (folder / "a", 0),
            (folder, 0o500),
        ):
            path.chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, name], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert ", [])" in done.stdout
        assert list((home / "runs").iterdir()) == []


def test_what_cannot_be_removed_is_said_and_hinders_nothing_else(cli: Cli) -> None:
    run_once(cli)
    mark = cli.home / "runs" / ".removing-000099"
    mark.write_text("not even a folder")
    made_older(cli, 1, 40)
    done = cli("gc", code=5)
    assert "cannot remove run 99" in done.stderr and "freed 3." in done.stdout
    assert known(cli) == [] and left(cli) == [".removing-000099"]


def test_mount_points_are_not_crossed(cli: Cli) -> None:
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user cannot mount anything")
    run_once(cli)
    precious = cli.work / "precious"
    precious.mkdir()
    (precious / "file").write_text("here")
    inside = cli.folder() / "steps" / "my data"
    inside.mkdir()
    script = 'mount --bind "$1" "$2" && "$3" rm 1'
    words = ["unshare", "-m", "sh", "-c", script, "sh", precious, inside, cli.program]
    done = subprocess.run(words, env=cli.env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and f"something is mounted at {inside}" in done.stderr
    assert (precious / "file").read_text() == "here" and known(cli) == [1]
    cli("rm", "1")
    assert (precious / "file").exists()


def test_a_run_that_another_open_run_reads_from_stays(cli: Cli) -> None:
    run_once(cli)
    used = cli.folder() / "steps" / "quick" / "output"
    words = json.dumps(["sh", "-c", "sleep 60", str(used)], ensure_ascii=False)
    cli("submit", cli.job(f"name: reader\nkind: command\ncommand: {words}\n"))
    assert "run 2 (reader), which has not ended, uses files of run 1" in cli("rm", "1", code=2).stderr
    made_older(cli, 1, 40)
    done = cli("gc", "--older", "30d")
    assert "run 1 stays: run 2 (reader)" in done.stderr and done.stdout == "freed 0 B: 0 runs\n"
    cli("stop", "2")
    cli("rm", "1")
    assert known(cli) == [2]


def test_gc_takes_what_is_old_and_can_keep_what_failed(cli: Cli) -> None:
    for _ in range(2):
        run_once(cli)
    run_once(cli, "name: bad\nkind: command\ncommand: ['false']\n", code=1)
    run_once(cli)
    for run in (1, 3):
        made_older(cli, run, 31)
    assert "would free" in cli("gc", "--dry-run").stdout
    assert cli.json("gc", "--dry-run", "--keep-failed")["runs"] == [1]
    assert known(cli) == [4, 3, 2, 1]
    done = cli("gc", "--keep-failed").stdout
    assert done.startswith("freed 3.") and done.endswith("MiB: 1 run\n")
    assert known(cli) == [4, 3, 2]
    assert cli.json("gc", "--older", "40d")["runs"] == []
    told = cli.json("gc")
    assert told["runs"] == [3] and told["bytes"] > 0 and told["problems"] == []
    assert left(cli) == ["000002", "000004"]
    assert "must be a duration" in cli("gc", "--older", "soon", code=2).stderr


def test_gc_takes_half_written_runs_and_folders_without_a_run(cli: Cli) -> None:
    run_once(cli)
    run_once(cli)
    with sqlite3.connect(cli.home / "state.db") as db:
        db.execute("UPDATE runs SET state = 'NEW', ended = NULL WHERE id = 1")
    db.close()
    made_older(cli, 1, 2)
    with (cli.home / "submit.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # as a submit that is still at it
        assert "is being written" in cli("rm", "1", code=2).stderr
        cli("rm", "2")
    cli("ps")  # its agent undoes what a killed submit left
    cli.wait_until_idle()
    assert not cli.folder(1).exists()
    (cli.home / "runs" / "000002" / "x").mkdir(parents=True)
    for path in ("000777", "notes", "12"):  # no number of ours, no run
        (cli.home / "runs" / path).mkdir()
        os.utime(cli.home / "runs" / path, (0, 0))
    assert cli.json("gc")["strays"] == []
    os.utime(cli.folder(2), (0, 0))
    assert cli.json("gc")["strays"] == [{"run": 2, "why": "no run owns this folder"}]
    assert left(cli) == ["000777", "12", "notes"]


def test_gc_after_the_loss_of_the_index_takes_nothing(cli: Cli) -> None:
    run_once(cli)
    os.utime(cli.folder(), (0, 0))
    for path in cli.home.glob("state.db*"):
        path.unlink()
    assert cli.json("gc", "--older", "1s")["strays"] == []
    assert "`runner recover`" in cli("submit", cli.job(QUICK), code=5).stderr  # it has given out number 1 now
    assert cli.json("gc", "--older", "1s")["strays"] == []
    assert (cli.folder() / "plan.json").exists()


CHANGES = "mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,pwrite64,ftruncate"


@pytest.mark.slow
def test_killed_at_any_moment_a_run_is_whole_or_gone(cli: Cli, tmp_path: Path) -> None:
    """KILL at each system call in turn that changes the disk, until one removal goes through."""
    if shutil.which("strace") is None:
        pytest.skip("there is no strace")
    run_once(cli)
    whole = tmp_path / "whole"
    shutil.copytree(cli.home, whole, symlinks=True)
    seen = set()
    for n in range(1, 200):
        shutil.rmtree(cli.home)
        shutil.copytree(whole, cli.home, symlinks=True)
        kill = f"inject={CHANGES}:signal=KILL:when={n}"
        words = ["strace", "-qq", "-o", tmp_path / "calls", "-e", f"trace={CHANGES}", "-e", kill]
        done = subprocess.run([*words, cli.program, "rm", "1"], env=cli.env, capture_output=True, check=False)
        there = known(cli) == [1]
        big = cli.folder() / "steps" / "quick" / "output" / "big"
        if there:
            assert big.stat().st_size == 3 << 20 and cli("show", "1")
        cli("gc")
        assert left(cli) == (["000001"] if there else []), (tmp_path / "calls").read_text()
        seen.add((there, done.returncode == 0))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert seen == {(True, False), (False, False), (False, True)}
