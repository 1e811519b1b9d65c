"""Nothing is lost and nothing is done twice, whoever is killed; `make chaos` does it at length.

What a kill leaves in a window of a millisecond is written here by hand.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli import Cli
from test_cli import fake_vllm  # noqa: F401 - a fixture

from runner.agent import end_agent

PROGRAM = Path(__file__).parents[1] / "chaos" / "chaos.py"
SERVICE = "kind: serve, engine: vllm-serve, args: {model: m, served_model_name: demo, port: %d}"


def chaos(folder: Path, *args: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, PROGRAM, "--dir", folder, *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


@pytest.mark.slow
def test_the_cli_and_the_agent_may_die_at_any_moment(tmp_path: Path) -> None:
    summary = chaos(tmp_path, "--seed", "3", "--kills", "15", "--runs", "8", "--seconds", "120")
    assert sum(summary["kills"].values()) >= 15
    assert summary["runs"] > 2


@pytest.mark.slow
def test_a_supervisor_may_die_at_any_moment(tmp_path: Path) -> None:
    chaos(tmp_path, "--entry", "--seed", "3", "--kills", "5", "--runs", "2", "--seconds", "120")


@pytest.mark.slow
def test_the_power_may_fail_at_any_moment(tmp_path: Path) -> None:
    chaos(tmp_path, "--outage", "--seed", "3", "--kills", "3", "--runs", "6", "--seconds", "120")


def rows(cli: Cli, query: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(cli.home / "state.db", timeout=30)) as db, db:
        return db.execute(query).fetchall()


def until(happened: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def killed_in(cli: Cli, state: str) -> None:
    """The agent is dead and an attempt is in that state."""
    until(lambda: rows(cli, f"SELECT 1 FROM attempts WHERE state = '{state}'"))
    end_agent(cli.home)


def test_a_service_whose_start_was_not_recorded_becomes_ready(fake_vllm: Cli) -> None:  # noqa: F811
    fake_vllm("submit", "--detach", fake_vllm.job(f"name: s\nsteps: [{{name: s, {SERVICE % 18976}}}]\n"))
    killed_in(fake_vllm, "READY")
    rows(fake_vllm, "UPDATE attempts SET state = 'STARTING'")
    fake_vllm("ps")
    until(lambda: rows(fake_vllm, "SELECT 1 FROM attempts WHERE state = 'READY'"))


def test_a_port_leased_just_before_the_agent_died_is_the_steps_own(fake_vllm: Cli) -> None:  # noqa: F811
    first = "{name: w, kind: command, script: sleep 1}"
    fake_vllm(
        "submit", "--detach", fake_vllm.job(f"name: s\nsteps: [{first}, {{name: s, {SERVICE % 18977}}}]\n")
    )
    killed_in(fake_vllm, "RUNNING")
    rows(fake_vllm, "INSERT INTO leases VALUES ('port:18977', 99, 1, 's')")
    fake_vllm("ps")
    until(lambda: rows(fake_vllm, "SELECT 1 FROM attempts WHERE state = 'READY'"))
    fake_vllm("stop")
    assert rows(fake_vllm, "SELECT * FROM leases") == []


def test_a_lease_of_a_step_that_never_started_is_given_back(cli: Cli) -> None:
    steps = "[{name: w, kind: command, script: sleep 9}, {name: p, kind: command, command: ['true']}]"
    cli("submit", "--detach", cli.job(f"name: s\nsteps: {steps}\n"))
    killed_in(cli, "RUNNING")
    rows(cli, "INSERT INTO leases VALUES ('port:18977', 99, 1, 'p')")
    cli("stop")
    assert rows(cli, "SELECT * FROM leases") == []


def test_a_second_launch_of_a_second_try_leaves_the_first_ones_output(cli: Cli) -> None:
    script = 'echo x > "$RUNNER_OUTPUT/f"; case $ASCEND_RUNNER_ATTEMPT in *.1) exit 3;; esac; sleep 1.5'
    retry = "retry: {attempts: 2, backoff: 0.1}"
    cli("submit", "--detach", cli.job(f"name: s\n{retry}\nkind: command\nscript: |\n  {script}\n"))
    until(lambda: rows(cli, "SELECT 1 FROM attempts WHERE n = 2 AND state = 'RUNNING'"))
    end_agent(cli.home)
    cli.kill("runner/entry")
    cli.kill("script.sh")
    rows(cli, "UPDATE attempts SET state = 'STARTING' WHERE n = 2")
    for name in ("started.json", "launched.json"):
        (cli.log("s", 2).parent / name).unlink(missing_ok=True)
    cli("wait")
    assert (cli.log("s", 1).parent / "output" / "f").exists()
    assert (cli.folder() / "steps" / "s" / "output" / "f").exists()


def test_a_killed_submit_leaves_nothing(cli: Cli) -> None:
    cli("submit", "--detach", cli.job("name: s\nkind: command\nscript: sleep 1\n"))
    (held,) = cli.held()
    cli.wait_until_idle()
    half = held.with_name(held.name.replace("-1.json", "-2.json"))
    rows(cli, "INSERT INTO runs(name, state, file, created) VALUES ('s', 'NEW', '', 1)")
    cli.folder(2).mkdir()
    half.write_text("{}")
    assert [r["id"] for r in cli.json("ps", "--all")["runs"]] == [1]
    cli.wait_until_idle()
    assert cli.held() == []
    assert not cli.folder(2).exists()


def test_a_torn_line_of_the_story_harms_nobody(cli: Cli) -> None:
    cli("submit", "--detach", cli.job("name: s\nkind: command\nscript: sleep 1; echo done\n"))
    killed_in(cli, "RUNNING")
    story = cli.folder() / "events.jsonl"
    story.write_bytes(story.read_bytes()[:-9])
    assert "done" in cli("logs", "-f").stdout
    events = [line for line in story.read_text().splitlines() if line.endswith("}")]
    assert json.loads(events[-1])["event"] == "ended"


def test_who_waits_revives_a_dead_agent(cli: Cli) -> None:
    waiting = cli.start("submit", "--wait", cli.job("name: s\nkind: command\nscript: sleep 1\n"))
    until((cli.folder() / "events.jsonl").exists)
    killed_in(cli, "RUNNING")
    assert waiting.wait(timeout=20) == 0
    waiting.communicate()
