"""Watching a run: exact, live, and left by Ctrl-C."""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import pty
import resource
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli import Cli

from runner.cli.tail import Tail
from runner.store.story import Story


def command(words: str, more: str = "") -> str:
    return f"name: one\nkind: command\ncommand: {words}\n{more}"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def on_a_terminal(cli: Cli, *args: str | Path, **more: str) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty()
    env = {**cli.env, "TERM": "xterm", "COLUMNS": "100", **more}
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


@pytest.mark.parametrize("pause", [0.1, 2.0])
def test_a_second_ctrl_c_stops_the_run(cli: Cli, pause: float) -> None:
    job = cli.job(command("[sh, -c, 'echo up; exec sleep 60']"))
    process, terminal = on_a_terminal(cli, "submit", job)
    read_until(terminal, "\nup")
    process.send_signal(signal.SIGINT)
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    assert "runner logs -f 1" in read_until(terminal, "stopping run 1")
    read_until(terminal, "run 1 CANCELLED, stopped by you; exit code 130")
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
    assert digest(followed) == digest(cli.log("one").read_bytes())
    assert followed.count(b"\n") > 400_000
    last = cli("logs", "1", "--tail", "2").stdout.splitlines()
    assert last[0].startswith("line 399999 行")


def test_odd_bytes_and_endless_lines(cli: Cli) -> None:
    script = "import sys\nw = sys.stdout.buffer.write\nw(b'\\xff\\xfe bytes\\r\\n')\n"
    script += "w(b'y' * 20_000_000)\nw(b'\\nend')"
    (cli.work / "print.py").write_text(script)
    cli("submit", "--wait", cli.job(command("[python, print.py]")))
    out = subprocess.run([cli.program, "logs", "1"], env=cli.env, capture_output=True, check=True).stdout
    assert b"\xff\xfe bytes\r\n" + b"y" * 20_000_000 + b"\nend" in out


def test_an_endless_line_among_those_of_other_steps_loses_nothing(cli: Cli) -> None:
    (cli.work / "print.py").write_text("print('y' * 20_000_000)\nprint('end')")
    job = "name: two\nsteps:\n  - {name: long, kind: command, needs: [], command: [python, print.py]}\n"
    job += "  - {name: other, kind: command, needs: [], command: [sleep, '1']}\n"
    out = cli("submit", "--follow", cli.job(job)).stdout.splitlines()
    pieces = [line.removeprefix("long  | ") for line in out if line.startswith("long  | y")]
    assert "".join(pieces) == "y" * 20_000_000
    assert "long  | end" in out


def written(cli: Cli, data: bytes) -> Path:
    """The log of a run that has ended, with this in it."""
    cli("submit", "--wait", cli.job(command("['true']")))
    cli.log("one").write_bytes(data)
    return cli.log("one")


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_last_lines_are_as_many_as_asked_for(cli: Cli, end: bytes) -> None:
    lines = [f"{i} {'x' * 200}" for i in range(20_000)]
    written(cli, "\n".join(lines).encode() + end)
    for count in (0, 1, 2, 1000, 15_000, 20_000, 30_000):
        assert cli("logs", "1", "--tail", str(count)).stdout.splitlines() == lines[-count:][: count or 0]
    cli.log("one").write_bytes(b"")
    assert cli("logs", "1", "--tail", "5").stdout == ""


def test_a_large_log_needs_little_memory(cli: Cli) -> None:
    log = written(cli, b"")
    with log.open("wb") as f:
        for i in range(200):
            f.write(b"%d %s\n" % (i, b"x" * 600) * 1000 + b"y" * 400_000 + b"\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # a child begins with its parent's
    for more in ([], ["--tail", "150000"]):
        with log.with_name("out").open("wb") as out:
            started = subprocess.Popen([cli.program, "logs", "--step", "one", *more], env=cli.env, stdout=out)
            _, status, used = os.wait4(started.pid, 0)
            started.returncode = os.waitstatus_to_exitcode(status)
        assert started.returncode == 0
        assert used.ru_maxrss < max(before, 60_000) + 30_000  # KiB
        if not more:
            assert filecmp.cmp(log, log.with_name("out"), shallow=False)


def test_the_last_lines_and_what_comes_then_are_printed_once(cli: Cli) -> None:
    script = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo line $i; sleep 0.002; done; echo over $i"
    cli("submit", cli.job(f"name: one\nkind: command\nscript: {script}\n"))
    until = time.monotonic() + 20
    while not cli.log("one").exists() or cli.log("one").stat().st_size < 1000:
        assert time.monotonic() < until
        time.sleep(0.05)
    follower = cli.start("logs", "-f", "--tail", "20", "1")
    time.sleep(1.5)
    (cli.folder() / "snapshot" / "stop").touch()
    out = follower.communicate(timeout=20)[0].splitlines()
    numbers = [int(line.split()[1]) for line in out if line.startswith("line ")]
    assert len(numbers) > 20
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert f"over {numbers[-1]}" in out


def test_a_log_that_is_replaced_is_shown_once(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"one\ntw")
    tail = Tail(log)
    assert b"".join(tail.blocks(final=False)) == b"one\n"
    with log.open("ab") as f:
        f.write(b"o\nthree")
    (tmp_path / "thin").write_bytes(b"other\n" * 100)
    (tmp_path / "thin").replace(log)
    assert b"".join(tail.blocks(final=True)) == b"two\nthree\n"
    assert b"".join(tail.blocks(final=True)) == b""
    tail.close()


def test_a_plain_log_is_followed_when_the_story_has_lost_its_lines(cli: Cli) -> None:
    job = cli.job(command("[sh, -c, 'echo first; until [ -e go ]; do sleep 0.05; done; echo second']"))
    cli("submit", job)
    until = time.monotonic() + 20
    while not cli.log("one").exists() or "first" not in cli.log("one").read_text().splitlines():
        assert time.monotonic() < until
        time.sleep(0.05)
    (cli.folder() / "events.jsonl").write_text('{"event": "st\n')
    follower = cli.start("logs", "-f", "1")
    assert follower.stdout is not None
    while follower.stdout.readline() != "first\n":
        pass
    (cli.folder() / "snapshot" / "go").touch()
    out = follower.communicate(timeout=20)[0].splitlines()
    assert "second" in out
    assert out[-1] == "==> one SUCCEEDED"


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
    followed = cli("submit", "--follow", cli.job(job)).stdout.splitlines()
    assert [line for line in followed if line.startswith("t: ")] == [
        "t: 1/5  loss 2.5  0.5 s/step  0:00:02 left",
        "t: 5/5  loss 0.5  0.5 s/step  0:00:00 left",
    ]
    dumb, terminal = on_a_terminal(cli, "submit", cli.job(job), TERM="dumb")
    assert "\x1b" not in read_until(terminal, "3 SUCCEEDED")
    assert dumb.wait(timeout=10) == 0
    os.close(terminal)
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


HOSTILE = """
name: hostile
kind: command
script: |
  echo '::error::mine'
  echo ' ##[error]mine'
  exit 3
"""


@pytest.mark.parametrize(
    "args",
    [["logs", "1"], ["logs", "1", "--step", "hostile"], ["logs", "1", "--tail", "9"], ["wait", "1"]],
    ids=" ".join,
)
def test_whatever_prints_a_log_keeps_its_commands_from_github(cli: Cli, args: list[str]) -> None:
    cli("submit", "--wait", cli.job(HOSTILE), code=3)
    Story(cli.folder() / "events.jsonl").tell(
        event="step", step="hostile", state="FAILED", message="odd\n::error::mine\n##[error]mine\u2028"
    )
    done = cli(*args, code=None, GITHUB_ACTIONS="true")
    token = None
    seen = 0
    for line in (done.stdout + done.stderr).split("\n"):
        stops = line.startswith("::stop-commands::")
        if token is None and not stops:
            assert "##[" not in line
            assert not line.lstrip().startswith("::error::mine")
        seen += "mine" in line
        token = line.removeprefix("::stop-commands::") if stops else None if line == f"::{token}::" else token
    assert token is None
    assert seen >= 2


def test_ctrl_c_lets_github_listen_again(cli: Cli) -> None:
    cli("submit", cli.job(command("[sh, -c, 'echo up; exec sleep 30']")))
    follower = subprocess.Popen(
        [cli.program, "logs", "-f", "1"], env={**cli.env, "GITHUB_ACTIONS": "true"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert follower.stdout is not None
    seen = [""]
    while seen[-1] != "up\n":
        seen.append(follower.stdout.readline())
    follower.send_signal(signal.SIGINT)
    lines = [*map(str.strip, seen), *follower.communicate(timeout=20)[0].splitlines()]
    token = next(line for line in lines if line.startswith("::stop-commands::"))[17:]
    assert lines[-2:] == [f"::{token}::", "::endgroup::"]


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
