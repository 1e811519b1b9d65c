"""A run as its user sees it: the real CLI, real processes, no stack needed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli import Cli


def command(words: str, more: str = "") -> str:
    return f"name: one\nkind: command\ncommand: {words}\n{more}"


def test_submit_wait_gives_the_steps_own_code_and_says_whose_it_is(cli: Cli) -> None:
    done = cli("submit", "--wait", cli.job(command("[sh, -c, 'exit 7']")), code=7)
    last = done.stderr.strip().splitlines()[-1]
    assert "step 'step'" in last or "step 'one'" in last
    assert last.endswith("exit code 7")


@pytest.mark.parametrize(
    ("words", "more", "code"),
    [
        ("['true']", "", 0),
        ("[sh, -c, 'kill -9 $$']", "", 137),
        ("[sh, -c, 'kill -TERM $$']", "", 143),
        ("[sleep, '60']", "timeout: 1s\ngrace: 5s", 124),
        ("[no-such-program]", "", 127),
    ],
)
def test_exit_codes(cli: Cli, words: str, more: str, code: int) -> None:
    cli("submit", "--wait", cli.job(command(words, more)), code=code)
    cli("wait", "1", code=code)


def test_usage_and_spec_errors_are_2_and_leave_no_run(cli: Cli) -> None:
    wrong = cli.job(command("['true']", "comand: x"))
    done = cli("submit", wrong, code=2)
    assert "unknown key 'comand' - did you mean 'command'?" in done.stderr
    assert "did you mean 'submit'" in cli("submitt", code=2).stderr
    cli("submit", "no such file.yaml", code=2)
    assert cli.json("ps", "--all")["runs"] == []


def test_unknown_run_is_4(cli: Cli) -> None:
    for args in (["show", "9"], ["logs", "9"], ["wait", "nobody"], ["stop", "9"]):
        assert "there is no run" in cli(*args, code=4).stderr


def test_a_job_that_this_host_cannot_run_is_3(cli: Cli) -> None:
    job = "name: x\nstack: swift-4.3-cann9.0\nkind: infer\nprompts: [a]\nargs: {model: a/b}\n"
    assert "swift-4.3-cann9.0" in cli("submit", cli.job(job), code=3).stderr


def test_unusable_home_is_5(cli: Cli) -> None:
    blocked = cli.work / "file"
    blocked.write_text("")
    cli("submit", cli.job(command("['true']")), code=5, RUNNER_HOME=str(blocked))


def test_pipeline_hands_on_outputs_and_skips_after_a_failure(cli: Cli) -> None:
    job = """
name: pipe
steps:
  - {name: make, kind: command, script: 'echo "data: $PWD" > "$RUNNER_OUTPUT/a b"'}
  - name: use
    kind: command
    env: {FROM: "${{ steps.make.output_dir }}"}
    script: cat "$FROM/a b"; exit 3
  - {name: never, kind: command, command: ['true']}
"""
    cli("submit", "--wait", cli.job(job), code=3)
    steps = cli.steps()
    assert [steps[n]["state"] for n in ("make", "use", "never")] == ["SUCCEEDED", "FAILED", "SKIPPED"]
    assert "data: " in cli.log("use").read_text()
    assert "step 'use' did not succeed" in cli("show").stdout


def test_independent_steps_run_together(cli: Cli) -> None:
    meet = "until [ -e {0} ]; do sleep 0.02; done"
    job = f"""
name: both
steps:
  - {{name: a, kind: command, needs: [], script: 'touch "$DIR/a"; {meet.format('"$DIR/b"')}', timeout: 20s}}
  - {{name: b, kind: command, needs: [], script: 'touch "$DIR/b"; {meet.format('"$DIR/a"')}', timeout: 20s}}
env: {{DIR: "${{{{ run.dir }}}}"}}
"""
    cli("submit", "--wait", cli.job(job))


def test_steps_run_in_a_copy_of_the_jobs_folder(cli: Cli) -> None:
    (cli.work / "data.txt").write_text("as submitted")
    job = cli.job(command("[sh, -c, 'sleep 0.5; cat data.txt']"))
    cli("submit", job)
    (cli.work / "data.txt").write_text("changed meanwhile")
    cli("wait")
    assert "as submitted" in cli("logs").stdout


def test_follow_prints_as_it_happens_and_loses_nothing(cli: Cli) -> None:
    job = cli.job(command("[sh, -c, 'for i in $(seq 2000); do echo line $i; done; sleep 0.3; printf last']"))
    out = cli("submit", "--follow", job).stdout
    lines = [line for line in out.splitlines() if line.startswith("line ")]
    assert lines == [f"line {i}" for i in range(1, 2001)]
    assert "last" in out
    assert [line for line in cli("logs").stdout.splitlines() if line.startswith("line ")] == lines
    assert len(cli("logs", "--tail", "3").stdout.splitlines()) == 3


def test_ctrl_c_leaves_the_run_going(cli: Cli) -> None:
    follower = cli.start("submit", "--follow", cli.job(command("[sh, -c, 'echo up; sleep 6; echo done']")))
    assert follower.stdout is not None
    while "up" not in follower.stdout.readline():
        pass
    follower.send_signal(signal.SIGINT)
    _, err = follower.communicate(timeout=10)
    assert "goes on" in err
    cli("wait", "1")
    assert "done" in cli("logs").stdout


def test_stop_ends_all_processes_and_is_130(cli: Cli) -> None:
    script = "setsid sleep 300 & (sleep 300 &) ; trap 'echo saved; exit 0' TERM; while :; do sleep 0.05; done"
    cli("submit", cli.job(f"name: s\nkind: command\nscript: |\n  {script}\n"))
    while not cli.log("step").exists() and not cli.log("s").exists():
        time.sleep(0.02)
    time.sleep(0.3)
    cli("stop")
    cli.wait_until_idle()
    assert "saved" in cli("logs").stdout
    cli("wait", code=130)
    assert cli.json("show")["run"]["state"] == "CANCELLED"
    assert "has ended already" in cli("stop").stdout


def test_run_timeout_is_124(cli: Cli) -> None:
    job = "name: t\ntimeout: 1s\nsteps:\n  - {name: a, kind: command, command: [sleep, '60'], grace: 1s}\n"
    job += "  - {name: b, kind: command, command: ['true']}\n"
    assert "timeout" in cli("submit", "--wait", cli.job(job), code=124).stderr
    assert cli.steps()["b"]["state"] in ("SKIPPED", "CANCELLED")


def test_retry_keeps_every_attempt(cli: Cli) -> None:
    script = '[ -e "$MARK" ] || { touch "$MARK"; echo first; exit 9; }; echo second; ls "$RUNNER_OUTPUT"'
    job = "name: r\nretry: {attempts: 2, backoff: 0.1}\nkind: command\nenv: {MARK: '${{ run.dir }}/mark'}\n"
    cli("submit", "--wait", cli.job(job + f"script: |\n  {script}\n"))
    attempts = cli.json("show")["attempts"]
    assert [(a["n"], a["state"], a["code"]) for a in attempts] == [(1, "ENDED", 9), (2, "ENDED", 0)]
    name = attempts[0]["step"]
    assert "first" in cli.log(name, 1).read_text()
    assert "second" in cli.log(name, 2).read_text()


SERVER = """
import http.server, json, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": "demo"}]}).encode()
        self.send_response(200); self.end_headers(); self.wfile.write(body)
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = {"choices": [{"message": {"content": "<think>\\n\\n</think>\\n\\nhello you"}}]}
        self.send_response(200); self.end_headers(); self.wfile.write(json.dumps(answer).encode())
    def log_message(self, *a): pass
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.ThreadingHTTPServer(("127.0.0.1", port), H).serve_forever()
"""


@pytest.fixture
def fake_vllm(cli: Cli) -> Cli:
    """A `vllm` on PATH that is a small real HTTP server, as a stack of its own."""
    root = cli.work.parent / "stack"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").symlink_to(os.path.realpath(cli.program.parent / "python"))
    (root / "bin" / "server.py").write_text(SERVER)
    program = root / "bin" / "vllm"
    program.write_text('#!/bin/sh\nexec python "$(dirname "$0")/server.py" "$@"\n')
    program.chmod(0o755)
    cli("stack", "adopt", "cpu", root)
    return cli


def test_service_lives_until_its_last_consumer_ended(fake_vllm: Cli) -> None:
    job = """
name: chat
steps:
  - {name: serve, kind: serve, engine: vllm-serve, args: {model: m, served_model_name: demo}}
  - name: ask
    kind: probe
    target: serve
    request: {messages: [{role: user, content: hi}]}
    expect: {equals: hello you}
"""
    fake_vllm("submit", "--wait", fake_vllm.job(job))
    steps = fake_vllm.steps()
    assert steps["serve"]["state"] == steps["ask"]["state"] == "SUCCEEDED"
    assert steps["ask"]["outputs"]["answer"] == "hello you"
    fake_vllm.wait_until_idle()


def test_wrong_answer_fails_the_run_and_ends_the_service(fake_vllm: Cli) -> None:
    job = """
name: chat
steps:
  - {name: serve, kind: serve, engine: vllm-serve, args: {model: m, served_model_name: demo}}
  - {name: ask, kind: probe, target: serve, request: {messages: []}, expect: {equals: something else}}
"""
    done = fake_vllm("submit", "--wait", fake_vllm.job(job), code=1)
    assert "step 'ask'" in done.stderr
    fake_vllm.wait_until_idle()


def test_service_alone_is_ready_and_stays_until_stopped(fake_vllm: Cli) -> None:
    job = "name: s\nkind: serve\nengine: vllm-serve\nargs: {model: m, served_model_name: demo}\n"
    assert "READY" in fake_vllm("submit", "--wait", fake_vllm.job(job)).stderr
    assert [r["state"] for r in fake_vllm.json("ps")["runs"]] == ["RUNNING"]
    fake_vllm("stop")
    fake_vllm("wait", code=130)


def test_dead_service_fails_what_needs_it(fake_vllm: Cli) -> None:
    job = """
name: chat
steps:
  - {name: serve, kind: serve, engine: vllm-serve, args: {model: m, served_model_name: demo}}
  - {name: use, kind: command, command: [sleep, '300'], env: {URL: "${{ steps.serve.endpoint }}"}}
"""
    fake_vllm("submit", fake_vllm.job(job))
    while fake_vllm.steps()["use"]["state"] != "ACTIVE":
        time.sleep(0.05)
    assert fake_vllm.kill("server.py serve") == 1
    fake_vllm("wait", code=137)
    assert fake_vllm.steps()["use"]["reason"] == "dependency"


def test_secrets_reach_the_step_and_nothing_else(cli: Cli) -> None:
    job = command("[sh, -c, 'echo ${#TOKEN}']", "secrets: [TOKEN]")
    cli("submit", "--wait", cli.job(job), TOKEN="s3cret-value-42")
    assert "15" in cli("logs").stdout.splitlines()
    written = [
        p for p in cli.home.rglob("*") if p.is_file() and not p.is_symlink() and "stacks" not in p.parts
    ]
    assert not [p for p in written if b"s3cret-value-42" in p.read_bytes()]
    assert "needs the secret TOKEN" in cli("submit", "--wait", cli.job(job), code=3).stderr


def test_steps_do_not_inherit_the_submitters_tokens(cli: Cli) -> None:
    cli("submit", "--wait", cli.job(command("[env]")), HF_TOKEN="hf_secret", LOCAL_RANK="3", WORLD_SIZE="8")
    log = cli("logs").stdout
    assert "HF_TOKEN" not in log
    assert "LOCAL_RANK" not in log
    assert "PATH=" in log


def test_each_run_has_the_environment_of_its_own_submitter(cli: Cli) -> None:
    cli("submit", cli.job(command("[sleep, '20']", "secrets: [A]"), "long.yaml"), TZ="Earth", A="first")
    job = command("[sh, -c, 'echo $TZ ${#B}']", "secrets: [B]")
    cli("submit", "--wait", cli.job(job), TZ="Mars", B="other")
    assert "Mars 5" in cli("logs", "2").stdout.splitlines()
    cli("stop", "1")
    cli.wait_until_idle()
    assert cli.held() == []


def test_a_killed_agent_is_replaced_and_nothing_runs_twice(cli: Cli) -> None:
    job = "name: k\nsteps:\n"
    for name in ("a", "b", "c"):
        job += f"  - {{name: {name}, kind: command, script: 'echo {name} >> \"$DIR/ran\"; sleep 2'}}\n"
    job += 'env: {DIR: "${{ run.dir }}"}\n'
    cli("submit", cli.job(job))
    killed = 0
    while cli.json("show")["run"]["ended"] is None:
        time.sleep(0.7)  # one that is killed at once, again and again, gets nowhere
        killed += cli.kill("runner submit") + cli.kill("runner show")  # the agent is a fork of these
    assert killed >= 2
    assert (cli.folder() / "ran").read_text().split() == ["a", "b", "c"]
    cli("submit", "--wait", cli.job(command("['true']")))
    cli.wait_until_idle()
    assert cli.held() == []


def test_killed_supervisor_is_lost_and_its_leftovers_are_ended(cli: Cli) -> None:
    job = cli.job("name: l\nkind: command\nscript: echo up; sleep 301 & sleep 302\n")
    cli("submit", job)
    while not cli.log("l").exists() or "up" not in cli.log("l").read_text().splitlines():
        time.sleep(0.02)
    assert cli.kill("runner/entry") == 1
    said = cli("wait", code=5).stderr
    assert "supervisor is gone" in said
    cli.wait_until_idle()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_full_disk_delays_a_run_and_loses_nothing(cli: Cli, tmp_path: Path) -> None:
    disk = tmp_path / "small"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], check=True)
    home = {"RUNNER_HOME": str(disk / "home")}
    try:
        fill = "name: f\nsnapshot: false\nkind: command\nscript: |\n  head -c 2m /dev/zero || exit 9\n"
        cli("submit", cli.job(fill), **home)
        while shutil.disk_usage(disk).free:
            time.sleep(0.02)
        time.sleep(0.5)
        assert "free disk space" in cli("submit", cli.job(fill), code=5, **home).stderr
        (disk / "home/runs/000001/steps/f/attempts/1/log.txt").write_text("")
        cli("wait", "1", code=9, **home)
    finally:
        cli("stop", code=None, **home)
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_many_submits_at_once(cli: Cli) -> None:
    job = cli.job(command("['true']"))
    started = [cli.start("submit", "--wait", job) for _ in range(12)]
    assert [p.wait(timeout=60) for p in started] == [0] * 12
    runs = cli.json("ps", "--all")["runs"]
    assert {r["state"] for r in runs} == {"SUCCEEDED"}
    assert sorted(r["id"] for r in runs) == list(range(1, 13))
    for process in started:
        process.communicate()


def test_submit_json_and_story(cli: Cli) -> None:
    made = cli.json("submit", cli.job(command("['true']")))
    assert made["schema"] == "submitted/2"
    cli("wait", str(made["runs"][0]["run"]))
    events = [json.loads(line) for line in (cli.folder() / "events.jsonl").read_text().splitlines()]
    assert [e["event"] for e in events] == ["submitted", "step", "step", "ended"]
