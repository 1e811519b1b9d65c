"""Watching a run: exact, live, and left by Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli import Cli


def command(words: str, more: str = "") -> str:
    return f"name: one\nkind: command\ncommand: {words}\n{more}"


def on_a_terminal(cli: Cli, *args: str | Path) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty()
    env = {**cli.env, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [cli.program, *args], env=env, cwd=cli.work, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    return process, ours


def read_until(terminal: int, words: str, seconds: float = 30) -> str:
    seen = b""
    until = time.monotonic() + seconds
    while words.encode() not in seen:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        if ready:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
        assert time.monotonic() < until, seen
    return seen.decode("utf-8", "replace")


def test_a_second_ctrl_c_stops_the_run(cli: Cli) -> None:
    job = cli.job(command("[sh, -c, 'echo up; exec sleep 60']"))
    process, terminal = on_a_terminal(cli, "submit", job)
    read_until(terminal, "\nup")
    process.send_signal(signal.SIGINT)
    assert "runner logs -f 1" in read_until(terminal, "within")
    process.send_signal(signal.SIGINT)
    read_until(terminal, "run 1 CANCELLED")
    assert process.wait(timeout=20) == 130
    os.close(terminal)
    cli.wait_until_idle()


@pytest.mark.parametrize("how", ["--follow", "--wait"])
def test_one_ctrl_c_leaves_it_going(cli: Cli, how: str) -> None:
    job = cli.job(command("[sh, -c, 'echo up; sleep 5; echo done']"))
    process, terminal = on_a_terminal(cli, "submit", how, job)
    read_until(terminal, "up" if how == "--follow" else "run 1")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == (0 if how == "--follow" else 130)
    os.close(terminal)
    cli("wait", "1")
    assert "done" in cli("logs", "1").stdout


def test_every_byte_arrives_in_order(cli: Cli) -> None:
    script = "import sys\nfor i in range(400_000): sys.stdout.write(f'line {i} 行 ' + 'x' * 60 + chr(10))\n"
    (cli.work / "print.py").write_text(script)
    cli("submit", cli.job(command("[python, print.py]")))
    followed = subprocess.run(
        [cli.program, "logs", "-f", "--step", "one", "1"], env=cli.env, capture_output=True, check=True
    ).stdout
    assert hashlib.sha256(followed).digest() == hashlib.sha256(cli.log("one").read_bytes()).digest()
    assert followed.count(b"\n") > 400_000
    last = cli("logs", "1", "--tail", "2").stdout.splitlines()
    assert last[0].startswith("line 399999 行")


def test_odd_bytes_and_endless_lines(cli: Cli) -> None:
    script = "import sys\nw = sys.stdout.buffer.write\nw(b'\\xff\\xfe bytes\\r\\n')\n"
    script += "w(b'y' * 20_000_000)\nw(b'\\nend')"
    (cli.work / "print.py").write_text(script)
    cli("submit", "--wait", cli.job(command("[python, print.py]")))
    out = subprocess.run([cli.program, "logs", "1"], env=cli.env, capture_output=True, check=True).stdout
    assert b"\xff\xfe bytes\n" in out
    assert b"y" * 20_000_000 in out.replace(b"\n", b"")


def test_a_progress_bar_is_shown_by_its_last_state_and_thinned(cli: Cli) -> None:
    bar = "for i in range(101): print(f'\\rTrain: {i}%|##| {i}/100', end='')\nprint()\nprint('after')\n"
    (cli.work / "bar.py").write_text(bar)
    out = cli("submit", "--follow", cli.job(command("[python, bar.py]"))).stdout.splitlines()
    assert "Train: 100%|##| 100/100" in out
    assert "after" in out
    assert cli.log("one").read_bytes().count(b"\r") <= 11


ROWS = """
import json, os, pathlib, time
out = pathlib.Path(os.environ["OUT"])
for step in range(1, 6):
    row = {"loss": 3 - step / 2, "global_step/max_steps": f"{step}/5", "train_speed(s/it)": 0.5}
    with (out / "logging.jsonl").open("a") as f:
        f.write(json.dumps(row) + chr(10))
    print(f"step {step}", flush=True)
    time.sleep(0.3)
"""


def test_a_training_has_a_live_line_on_a_terminal(cli: Cli) -> None:
    (cli.work / "train.py").write_text(ROWS)
    job = 'name: t\nkind: command\ncommand: [python, train.py]\nenv: {OUT: "${{ run.dir }}/steps/t/output"}\n'
    process, terminal = on_a_terminal(cli, "submit", cli.job(job))
    seen = read_until(terminal, "SUCCEEDED")
    assert process.wait(timeout=10) == 0
    os.close(terminal)
    assert "t ━━━━━━━━──────────── 2/5" in seen
    assert "loss 2" in seen
    plain = cli("logs", "1").stdout
    assert "━" not in plain
    assert [line for line in plain.splitlines() if line.startswith("step")] == [
        f"step {i}" for i in range(1, 6)
    ]


def test_waiting_shows_the_end_of_the_log_of_what_failed(cli: Cli) -> None:
    said = cli(
        "submit", "--wait", cli.job(command("[sh, -c, 'seq 100; echo why >&2; exit 4']")), code=4
    ).stderr
    assert "  | why" in said
    assert "  | 90" in said
    assert "  | 50\n" not in said
    assert said.strip().splitlines()[-1].endswith("exit code 4")


TWO = """
name: two
steps:
  - {name: first, kind: command, script: "echo '::error::not mine'; echo one"}
  - {name: second, kind: command, script: "echo two; exit 3"}
"""


def test_log_groups_of_github_cannot_be_spoken_to_by_a_log(cli: Cli) -> None:
    job = cli.job(TWO)
    out = cli("submit", "--follow", job, code=3, GITHUB_ACTIONS="true").stdout.splitlines()
    groups = [line for line in out if line.startswith("::") and "stop-commands" not in line]
    assert groups.count("::endgroup::") == 2
    assert [g for g in groups if g.startswith("::group::")] == ["::group::first", "::group::second"]
    stop = out.index("::group::first") + 1
    token = out[stop].removeprefix("::stop-commands::")
    assert out[stop] != token
    assert out.index(f"::{token}::") > next(i for i, line in enumerate(out) if "not mine" in line) > stop
    assert any(line.startswith("::error title=step second::") for line in out)


def test_log_groups_of_gitlab(cli: Cli) -> None:
    out = cli("submit", "--follow", cli.job(TWO), code=3, GITLAB_CI="true").stdout
    assert out.count("section_start:") == out.count("section_end:") == 2


def test_a_torn_line_in_the_story_breaks_nothing(cli: Cli) -> None:
    cli("submit", "--wait", cli.job(command("[echo, hello]")))
    with (cli.folder() / "events.jsonl").open("a") as f:
        f.write('{"event": "st\n[1]\n"x"\n{"event": 4, "step": []}\n')
    assert "hello" in cli("logs", "1").stdout
    cli("show", "1")
    assert json.loads(cli("show", "1", "--json").stdout)["run"]["state"] == "SUCCEEDED"
