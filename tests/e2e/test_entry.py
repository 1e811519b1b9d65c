"""The supervisor alone: real process trees, and what it records of their end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import runner

ENTRY = Path(runner.__file__).parent / "entry"
Begin = Callable[..., "Attempt"]


class Attempt:
    """One attempt folder and the `entry` on it."""

    def __init__(
        self, folder: Path, entry: Path, commands: list[dict[str, Any]], spec: dict[str, Any]
    ) -> None:
        self.folder = folder
        self.id = f"test.{os.getpid()}.{folder.parent.name}"
        base = {"schema": "attempt/1", "id": self.id, "commands": commands, "grace_s": 5.0, "linger_s": 0.2}
        (folder / "attempt.json").write_text(json.dumps({**base, **spec}))
        argv = [sys.executable, "-I", "-S", str(entry), str(folder)]
        self.process = subprocess.Popen(argv, start_new_session=True, stderr=subprocess.PIPE, text=True)

    def end(self, seconds: float = 15) -> dict[str, Any]:
        """exit.json, once `entry` is gone and has left nothing alive."""
        self.process.communicate(timeout=seconds)
        assert self.living() == []
        record: dict[str, Any] = json.loads((self.folder / "exit.json").read_text())
        return record

    def log(self) -> str:
        return (self.folder / "log.txt").read_text()

    def until(self, text: str) -> None:
        until = time.monotonic() + 10
        while not (self.folder / "log.txt").exists() or text not in self.log():
            assert time.monotonic() < until, self.log()
            time.sleep(0.01)

    def term(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def living(self) -> list[int]:
        mark = f"ASCEND_RUNNER_ATTEMPT={self.id}".encode()
        found = []
        for proc in (p for p in Path("/proc").iterdir() if p.name.isdigit()):
            try:
                if mark in (proc / "environ").read_bytes().split(b"\0"):
                    found.append(int(proc.name))
            except OSError:
                continue
        return found


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start an attempt; `entry` runs from a copy of its folder, as it is shipped."""
    entry = tmp_path / "shipped elsewhere" / "entry"
    shutil.copytree(ENTRY, entry, ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / "尝试 'one' & \"two\""
    folder.mkdir()
    started: list[Attempt] = []

    def start(*scripts: str | list[str], env: dict[str, str | None] | None = None, **spec: Any) -> Attempt:
        argvs = [["sh", "-c", s] if isinstance(s, str) else s for s in scripts]
        commands = [{"name": f"c{i}", "argv": argv, "env": env or {}} for i, argv in enumerate(argvs)]
        started.append(Attempt(folder, entry, commands, spec))
        return started[-1]

    yield start
    for attempt in started:
        for pid in attempt.living():
            os.kill(pid, signal.SIGKILL)


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
def test_end_of_a_command(begin: Begin, script: Any, reason: str, code: int, number: int | None) -> None:
    attempt = begin(script)
    end = attempt.end()
    assert (end["reason"], end["code"], end["signal"]) == (reason, code, number)
    assert attempt.process.returncode == code


def test_commands_run_in_order_until_one_fails(begin: Begin) -> None:
    attempt = begin("echo one", "echo two; exit 4", "echo three")
    assert attempt.end()["code"] == 4
    lines = [line for line in attempt.log().splitlines() if not line.startswith("[entry]")]
    assert lines == ["one", "two"]


def test_swift_wrappers_code_is_its_trainers_signal(begin: Begin, tmp_path: Path) -> None:
    program = tmp_path / "swift"
    program.write_text("#!/bin/sh\nexit 247\n")
    program.chmod(0o755)
    end = begin([str(program)]).end()
    assert (end["reason"], end["signal"], end["code"]) == ("signal", 9, 137)


def test_torchruns_codes_are_read_per_rank(begin: Begin) -> None:
    block = "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 77)\n"
    assert begin(["sh", "-c", f"printf '{block}'; exit 1"]).end()["ranks"] == {"1": -9}


def test_timeout(begin: Begin) -> None:
    end = begin("sleep 60", timeout_s=0.5).end()
    assert (end["reason"], end["stop"]["by"]) == ("timeout", "timeout")


def test_stop_lets_the_work_be_saved_and_intent_beats_the_code(begin: Begin) -> None:
    attempt = begin("trap 'sleep 0.3; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    attempt.until("up")
    attempt.term()
    assert attempt.end()["reason"] == "user"
    assert "saved" in attempt.log().splitlines()


def test_grace_ends_in_kill_and_a_second_term_needs_none(begin: Begin) -> None:
    deaf = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    attempt = begin(deaf, grace_s=0.5)
    attempt.until("up")
    attempt.term()
    assert attempt.end()["stop"]["killed"]


def test_a_second_term_kills(begin: Begin) -> None:
    attempt = begin("trap '' TERM; echo up; while :; do sleep 0.05; done", grace_s=60)
    attempt.until("up")
    attempt.term()
    attempt.until("stop:")
    attempt.term()
    assert attempt.end(seconds=5)["reason"] == "user"


def test_orphans_are_found_and_ended(begin: Begin) -> None:
    attempt = begin("setsid sh -c 'sleep 300 & sleep 300' & (setsid sleep 300 &); exit 0", grace_s=1)
    assert attempt.end()["code"] == 0


TORCHRUN = """
import os, signal, subprocess, sys, time
worker = "import signal, time\\n"
worker += "signal.signal(signal.SIGTERM, lambda *a: print('worker got it', flush=True))\\n"
worker += "while True: time.sleep(0.05)"
rank = f'''
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {worker!r}])
def stop(*a):
    print("rank", os.environ["LOCAL_RANK"], "saved", flush=True); child.kill(); child.wait(); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("rank up", os.environ["LOCAL_RANK"], flush=True)
while True: signal.pause()
'''
ranks = [subprocess.Popen([sys.executable, "-c", rank], env={**os.environ, "LOCAL_RANK": str(r)},
                          start_new_session=True) for r in (0, 1)]
signal.signal(signal.SIGTERM, lambda *a: print("launcher got it", flush=True))
sys.exit(max(p.wait() for p in ranks))
"""


def test_term_reaches_the_ranks_and_neither_launcher_nor_workers(begin: Begin) -> None:
    attempt = begin([sys.executable, "-c", TORCHRUN], stop="ranks")
    attempt.until("rank up 0")
    attempt.until("rank up 1")
    attempt.term()
    assert attempt.end()["reason"] == "user"
    lines = attempt.log().splitlines()
    assert {"rank 0 saved", "rank 1 saved"} <= set(lines)
    assert not {"launcher got it", "worker got it"} & set(lines)


def test_environment(begin: Begin, tmp_path: Path) -> None:
    setup = tmp_path / "set env.sh"
    setup.write_text('echo noise; export CANN=there LIBS="/cann:$LIBS"\n')
    attempt = begin(
        'echo "$CANN|$LIBS|$OWN|${HOME-none}|$ASCEND_RUNNER_ATTEMPT|$LOCAL_RANK"; tool',
        env={"LIBS": "/mine", "OWN": "值 with space"}, source_optional=[str(tmp_path / "no.sh")],
        source=[str(setup)], path_prepend=[str(tool(tmp_path))],
    )  # fmt: skip
    assert attempt.end()["code"] == 0
    line = next(line for line in attempt.log().splitlines() if line.startswith("there|"))
    assert line == f"there|/mine|值 with space|{os.environ['HOME']}|{attempt.id}|"
    assert "the tool" in attempt.log()


def tool(folder: Path) -> Path:
    program = folder / "my bin" / "tool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho the tool\n")
    program.chmod(0o755)
    return program.parent


def test_a_file_to_source_that_is_missing_is_said(begin: Begin) -> None:
    end = begin("true", source=["/no/set_env.sh"]).end()
    assert end["reason"] == "entry_error"
    assert "/no/set_env.sh" in end["message"]


def test_secrets_are_given_and_their_file_removed(begin: Begin, tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_text(json.dumps({"TOKEN": "s3cret"}))
    attempt = begin("[ ${#TOKEN} = 6 ]", secrets=str(file))
    assert attempt.end()["code"] == 0
    assert not file.exists()
    assert all(b"s3cret" not in p.read_bytes() for p in attempt.folder.iterdir())


def test_two_entries_never_run_the_same_attempt(begin: Begin) -> None:
    first = begin("echo ran; sleep 0.5")
    first.until("ran")
    argv = [sys.executable, str(ENTRY), str(first.folder)]
    second = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert second.returncode == 125
    assert "was started before" in second.stderr
    first.end()
    assert first.log().count("\nran\n") == 1


def test_killed_entry_leaves_no_record_of_an_end(begin: Begin) -> None:
    attempt = begin("echo up; sleep 60")
    attempt.until("up")
    attempt.process.kill()
    attempt.process.communicate()
    assert not (attempt.folder / "exit.json").exists()
    assert json.loads((attempt.folder / "started.json").read_text())["pid"] == attempt.process.pid


def test_unusable_attempt_is_said(begin: Begin) -> None:
    end = begin("true", cwd="/no/such/folder").end()
    assert (end["reason"], end["code"]) == ("entry_error", 125)
    assert "/no/such/folder" in end["message"]


SERVER = """
import http.server, json, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(json.dumps({"data": [{"id": sys.argv[2]}]}).encode())
    def log_message(self, *a): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def serve(port: int, model: str = "demo") -> list[str]:
    return [sys.executable, "-c", SERVER, str(port), model]


def ready(port: int, seconds: float = 10) -> dict[str, Any]:
    return {"port": port, "path": "/v1/models", "model": "demo", "timeout_s": seconds}


def test_ready_is_an_answer_with_our_model_from_our_own_listener(begin: Begin, port: int) -> None:
    attempt = begin(serve(port), ready=ready(port))
    attempt.until("READY")
    assert json.loads((attempt.folder / "ready.json").read_text())["port"] == port
    attempt.term()
    assert attempt.end()["reason"] == "user"


def test_another_model_on_our_port_is_not_ready(begin: Begin, port: int) -> None:
    attempt = begin(serve(port, "other"), ready=ready(port, 1))
    assert attempt.end()["reason"] == "not_ready"
    assert not (attempt.folder / "ready.json").exists()


def test_a_stranger_on_our_port_is_port_taken(begin: Begin, port: int) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        end = begin("sleep 60", ready=ready(port)).end()
    assert end["reason"] == "port_taken"
    assert str(port) in end["message"]


def test_a_server_that_moved_to_the_next_port_is_port_taken(begin: Begin, port: int) -> None:
    end = begin(serve(port + 1), ready=ready(port)).end()
    assert end["reason"] == "port_taken"
    assert str(port + 1) in end["message"]
