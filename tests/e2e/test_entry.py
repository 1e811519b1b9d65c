"""The supervisor alone: real process trees, and what it records of their end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attempt import Begin, beginner


@pytest.mark.parametrize(
    ("script", "reason", "code", "number"),
    [
        ("exit 0", "exit_code", 0, None),
        ("exit 7", "exit_code", 7, None),
        ("kill -SEGV $$", "signal", 139, 11),
        (["no such program"], "entry_error", 127, None),
        (["/etc/passwd"], "entry_error", 126, None),
    ],
)
def test_end_of_a_command(both: Begin, script: Any, reason: str, code: int, number: int | None) -> None:
    attempt = both(script)
    end = attempt.end()
    assert (end["reason"], end["code"], end["signal"]) == (reason, code, number)
    assert attempt.process.returncode == code
    assert [c["code"] for c in end["commands"]] == [code]


def test_commands_run_in_order_until_one_fails(both: Begin) -> None:
    attempt = both("echo one", "echo two; exit 4", "echo three")
    end = attempt.end()
    assert end["code"] == 4
    assert [(c["name"], c["code"]) for c in end["commands"]] == [("c0", 0), ("c1", 4)]
    assert attempt.said() == ["one", "two"]


def test_arguments_arrive_as_they_are(both: Begin) -> None:
    hostile = ["a b", "", "it's", 'say "x"', "$HOME `id` \\", "两\n行", "-n", "*"]
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    attempt = both([sys.executable, "-c", code, *hostile])
    assert attempt.end()["code"] == 0
    assert json.loads(next(s for s in attempt.said() if s.startswith("["))) == hostile


def test_log_is_whole(begin: Begin) -> None:
    attempt = begin("seq 1 200000; seq 1 200000 >&2")
    assert attempt.end()["code"] == 0
    assert attempt.said() == [str(i) for i in range(1, 200001)] * 2


def test_a_full_disk_under_the_log_ends_nothing(begin: Begin) -> None:
    attempt = begin("echo lost; true", "exit 3", log="/dev/full")
    assert attempt.end()["code"] == 3


@pytest.mark.parametrize(("code", "number"), [(247, 9), (241, 15)])
def test_swift_wrappers_code_is_its_trainers_signal(
    begin: Begin, tmp_path: Path, code: int, number: int
) -> None:
    program = tmp_path / "swift"
    program.write_text(f"#!/bin/sh\nexit {code}\n")
    program.chmod(0o755)
    end = begin([str(program)]).end()
    assert (end["reason"], end["signal"], end["code"]) == ("signal", number, 128 + number)


CHILD_FAILED = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-01-01_12:00:00
  host      : node
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 78)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 78
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_12:00:00
  host      : node
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 77)
  error_file: <N/A>
============================================================
"""


def test_torchruns_codes_are_read_per_rank(begin: Begin, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(CHILD_FAILED)
    assert begin(f"cat '{text}'; exit 1").end()["ranks"] == {"0": 1, "1": -9}


DEAF = "trap '' TERM; echo up; while :; do sleep 0.05; done"


def test_timeout(both: Begin) -> None:
    attempt = both("sleep 60", timeout_s=0.5)
    end = attempt.end()
    assert (end["reason"], end["stop"]["by"], attempt.process.returncode) == ("timeout", "timeout", 124)
    assert attempt.record("stopping")["reason"] == "timeout"


def test_stop_lets_the_work_be_saved_and_intent_beats_the_code(both: Begin) -> None:
    attempt = both(
        "trap 'sleep 0.3; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done", "echo no"
    )
    attempt.until("up")
    assert not (attempt.folder / "stopping.json").exists()
    attempt.term()
    end = attempt.end()
    assert (end["reason"], end["stop"]["by"], end["stop"]["killed"]) == ("user", "signal", [])
    assert attempt.process.returncode == 130
    assert "saved" in attempt.said()
    assert "no" not in attempt.said()
    assert attempt.record("stopping")["grace_s"] == 5


def test_grace_ends_in_kill(both: Begin) -> None:
    attempt = both(DEAF, grace_s=0.5)
    attempt.until("up")
    attempt.term()
    end = attempt.end()
    assert (end["reason"], end["signal"]) == ("user", 9)
    assert end["stop"]["killed"]


def test_a_second_term_kills(both: Begin) -> None:
    attempt = both(DEAF, grace_s=60)
    attempt.until("up")
    attempt.term()
    attempt.until("stop: ")
    attempt.term()
    assert attempt.end(seconds=5)["reason"] == "user"


def test_a_first_term_leaves_a_timed_out_attempt_its_grace(begin: Begin) -> None:
    attempt = begin("trap 'sleep 1; echo saved; exit 0' TERM; while :; do sleep 0.05; done", timeout_s=0.3)
    attempt.until("TERM to ")
    attempt.term()
    assert attempt.end()["reason"] == "timeout"
    assert "saved" in attempt.said()


def test_orphans_are_found_and_ended(both: Begin) -> None:
    attempt = both("setsid sh -c 'sleep 300 & sleep 300' & (setsid sleep 300 &); exit 0")
    assert attempt.end()["code"] == 0


TORCHRUN = """
import os, signal, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "rank.py"], env={**os.environ, "LOCAL_RANK": str(r)},
                          start_new_session=True) for r in (0, 1)]
signal.signal(signal.SIGTERM, lambda *a: os.write(1, b"launcher got it\\n"))
sys.exit(max(p.wait() for p in ranks))
"""
RANK = """
import os, signal, subprocess, sys, threading, time
def say(text):
    os.write(1, f"{text} {os.environ['LOCAL_RANK']}\\n".encode())
threading.Thread(target=time.sleep, args=(99,), daemon=True).start()  # as every trainer has
child = subprocess.Popen([sys.executable, "worker.py"])
def stop(*a):
    say("saved"); child.kill(); child.wait(); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
say("up")
while True: time.sleep(0.05)
"""
WORKER = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *a: os.write(1, b"worker got it\\n"))
while True: time.sleep(0.05)
"""


@pytest.fixture
def torchrun(tmp_path: Path) -> Path:
    """A launcher with two ranks in sessions of their own, each with a data loader's worker."""
    for name, text in (("launch.py", TORCHRUN), ("rank.py", RANK), ("worker.py", WORKER)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_term_reaches_the_ranks_and_neither_launcher_nor_workers(both: Begin, torchrun: Path) -> None:
    attempt = both([sys.executable, "launch.py"], stop="ranks", cwd=str(torchrun))
    attempt.until("up 0", "up 1")
    attempt.term()
    assert attempt.end()["reason"] == "user"
    assert sorted(attempt.said()) == ["saved 0", "saved 1", "up 0", "up 1"]


def test_term_passes_by_the_shell_around_a_rank(begin: Begin, torchrun: Path) -> None:
    script = f"export LOCAL_RANK=7; sh -c '{sys.executable} rank.py; echo shell has seen $?'; true"
    attempt = begin(script, stop="ranks", cwd=str(torchrun))
    attempt.until("up 7")
    attempt.term()
    attempt.end()
    assert attempt.said() == ["up 7", "saved 7", "shell has seen 0"]


def test_trainer_whose_wrapper_was_killed_gets_its_grace(begin: Begin, torchrun: Path) -> None:
    script = f"{sys.executable} rank.py & echo $$ >pid; wait"
    attempt = begin(script, own={"LOCAL_RANK": "0"}, stop="ranks", cwd=str(torchrun))
    attempt.until("up 0")
    os.kill(int((torchrun / "pid").read_text()), signal.SIGKILL)
    assert attempt.end()["signal"] == 9
    assert attempt.said() == ["up 0", "saved 0"]


def test_two_entries_never_run_the_same_attempt(both: Begin) -> None:
    first = both("echo ran; sleep 0.5")
    first.until("ran")
    second = subprocess.run(first.entry, capture_output=True, text=True, check=False)
    assert second.returncode == 125
    assert "was started before" in second.stderr
    first.end()
    assert first.said() == ["ran"]


def test_killed_entry_leaves_no_record_of_an_end(both: Begin) -> None:
    attempt = both("echo up; sleep 60")
    attempt.until("up")
    attempt.process.kill()
    attempt.process.wait()
    assert not (attempt.folder / "exit.json").exists()
    started = attempt.record("started")
    assert started["pid"] == attempt.process.pid
    assert started["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_unusable_attempt_is_said(both: Begin) -> None:
    end = both("true", cwd="/no/such/folder").end()
    assert (end["reason"], end["code"]) == ("entry_error", 125)
    assert "cwd" in end["message"]


@pytest.mark.parametrize(
    ("what", "value"), [("secrets", "/dev/shm/x"), ("ready", {"port": 1}), ("env", {"a.b": "1"})]
)
def test_the_stand_in_refuses_what_it_cannot_do(tmp_path: Path, what: str, value: Any) -> None:
    for begin in beginner(tmp_path, "sh", file="entry.sh"):
        attempt = begin("echo ran", **{what: value})
        assert attempt.end()["reason"] == "entry_error"
        assert attempt.said() == []
