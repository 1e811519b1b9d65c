"""The rest of a run's life: another try, groups, the queue, a stored run anew, a command inside."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

import pytest
from cli import Cli

from runner import submission
from runner.cli.home import set_up
from runner.engine import Engine
from runner.store.db import Store


def command(words: str, more: str = "") -> str:
    return f"name: one\nkind: command\ncommand: {words}\n{more}"


def wait_for(cli: Cli, step: str, state: str, run: int = 1) -> None:
    until = time.monotonic() + 20
    while cli.steps(str(run))[step]["state"] != state:
        assert time.monotonic() < until, cli.steps(str(run))
        time.sleep(0.05)


WAITS = """[sh, -c, 'until [ -e "$GO" ]; do sleep 0.05; done']"""
PIPE = """
name: pipe
steps:
  - {name: a, kind: command, script: 'echo a >> "$DIR/ran"'}
  - {name: b, kind: command, script: 'echo b >> "$DIR/ran"; [ -e "$DIR/ok" ]'}
  - {name: c, kind: command, script: 'echo c >> "$DIR/ran"'}
env: {DIR: "${{ run.dir }}"}
"""


def test_retry_keeps_what_succeeded_and_every_attempt(cli: Cli) -> None:
    cli("submit", "--wait", cli.job(PIPE), code=1)
    assert "has nothing" not in cli("retry", "1", "--wait", code=1).stderr
    (cli.folder() / "ok").touch()
    cli("retry", "--wait", "1")
    assert (cli.folder() / "ran").read_text().split() == ["a", "b", "b", "b", "c"]
    attempts = [(a["step"], a["n"], a["code"]) for a in cli.json("show")["attempts"]]
    assert attempts == [("a", 1, 0), ("b", 1, 1), ("b", 2, 1), ("b", 3, 0), ("c", 1, 0)]
    assert cli.json("show")["run"]["state"] == "SUCCEEDED"
    assert "nothing to try again" in cli("retry", "1", code=2).stderr


def test_retry_of_a_stopped_run_and_of_a_living_one(cli: Cli) -> None:
    cli("submit", cli.job(command("[sleep, '60']")))
    wait_for(cli, "one", "ACTIVE")
    assert "has not ended" in cli("retry", "1", code=2).stderr
    cli("stop", "1")
    assert "no training to go on with" in cli("retry", "1", "--resume", code=2).stderr
    cli("retry", "1")
    wait_for(cli, "one", "ACTIVE")
    cli("stop", "1")
    assert [a["reason"] for a in cli.json("show")["attempts"]] == ["user", "user"]


def test_of_two_retries_at_once_one_opens_the_run(cli: Cli) -> None:
    cli("submit", "--wait", cli.job(command("['false']")), code=1)
    both = [cli.start("retry", "1", "--wait") for _ in range(2)]
    said = {p.communicate(timeout=30)[1]: p.returncode for p in both}
    assert sorted(said.values()) in ([1, 2], [1, 1])  # one after the other is two tries
    assert not [text for text, code in said.items() if code == 2 and "run 1" not in text]
    cli.wait_until_idle()
    assert len(cli.json("show")["attempts"]) == 1 + list(said.values()).count(1)


def test_what_a_retry_holds_outlives_an_agent_that_lets_go(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("submit", "--wait", cli.job(command("['false']", "secrets: [TOKEN]\n")), code=1, TOKEN="t")
    cli.wait_until_idle()
    store, host = Store(cli.home), set_up(cli.home)
    agent = threading.Thread(target=lambda: Engine(Store(cli.home), host).tidy())
    hold = submission.hold

    def held_as_the_agent_looks(*args: object) -> None:
        hold(*args)  # type: ignore[arg-type]
        agent.start()
        agent.join(0.5)

    monkeypatch.setattr(submission, "hold", held_as_the_agent_looks)
    monkeypatch.setenv("TOKEN", "new")
    submission.retry(store, host.backend, store.run(1), resume=False)
    agent.join()
    assert len(cli.held()) == 1
    store.close()
    cli("wait", "1", code=1)


def test_only_chosen_reasons_are_retried(cli: Cli) -> None:
    retry = "retry: {attempts: 3, backoff: 0.1, on: [signal]}"
    cli("submit", "--wait", cli.job(command("[sh, -c, 'exit 4']", retry)), code=4)
    cli("submit", "--wait", cli.job(command("[sh, -c, 'kill -9 $$']", retry)), code=137)
    assert [len(cli.json("show", r)["attempts"]) for r in ("1", "2")] == [1, 3]


MATRIX = """
name: sweep
params: {lr: 1e-4, seed: 1}
matrix: {lr: [1e-4, 5e-5], seed: [1, 2]}
kind: command
command: [sh, -c, 'echo "$0 $1"; [ "$1" != 2 ]', "${{ params.lr }}", "${{ params.seed }}"]
"""


def test_matrix_makes_a_group(cli: Cli) -> None:
    made = cli("submit", "--wait", cli.job(MATRIX), code=1)
    assert "group sweep.1" in made.stderr
    runs = cli.json("ps", "--group", "sweep")["runs"]
    assert [(r["point"]["lr"], r["point"]["seed"], r["state"]) for r in runs] == [
        (5e-5, 2, "FAILED"), (5e-5, 1, "SUCCEEDED"), (1e-4, 2, "FAILED"), (1e-4, 1, "SUCCEEDED"),
    ]  # fmt: skip
    cli("wait", "--group", "sweep.1", code=1)
    assert "5e-05 1" in cli("logs", "3").stdout
    table = cli("show", "--group", "sweep").stdout
    assert "5e-05" in table
    cli("submit", "--wait", cli.job(MATRIX), "--set", "seed=1")
    assert len(cli.json("ps", "--group", "sweep")["runs"]) == 2
    assert len(cli.json("ps", "--group", "sweep.1")["runs"]) == 4
    assert "there is no group" in cli("ps", "--group", "nobody", code=4).stderr


def test_several_files_in_one_submit(cli: Cli) -> None:
    first = cli.job(command("['true']"), "a.yaml")
    second = cli.job(command("[sh, -c, 'exit 3']"), "b.yaml")
    made = cli.json("submit", first, second, "--group", "both")
    assert [r["group"] for r in made["runs"]] == ["both.1", "both.1"]
    cli("wait", "1", "2", code=3)
    wrong = cli.job("name: x\n", "c.yaml")
    cli("submit", first, wrong, code=2)
    assert len(cli.json("ps", "--all")["runs"]) == 2


def test_a_stored_run_starts_again_with_changes(cli: Cli) -> None:
    (cli.work / "data.txt").write_text("as submitted")
    job = "name: j\nparams: {word: a, n: 1}\nkind: command\n"
    job += 'script: echo "${{ params.word }} ${{ params.n }} $(cat data.txt)"\n'
    path = cli.job(job)
    cli("submit", "--wait", path, "--set", "word=b")
    (cli.work / "data.txt").write_text("changed")
    path.unlink()
    cli("submit", "--wait", "--from", "1", "--set", "n=2")
    assert "b 2 as submitted" in cli("logs", "2").stdout
    cli("submit", "--from", "1", path, code=2)
    cli("submit", "--from", "77", code=4)


def test_held_runs_wait_without_a_process(cli: Cli) -> None:
    cli("submit", "--hold", cli.job(command("[echo, up]", "secrets: [TOKEN]")), TOKEN="first")
    cli.wait_until_idle()
    assert cli.json("ps")["runs"][0]["state"] == "HELD"
    cli.wait_until_idle()
    cli("release", "1", TOKEN="second")
    cli("wait", "1")
    cli("submit", "--hold", cli.job(command("['true']")))
    cli("stop", "2")
    cli("wait", "2", code=130)


def test_who_waits_for_a_held_run_is_told_how_to_let_it_go(cli: Cli) -> None:
    cli("submit", "--hold", cli.job(command("['true']")))
    assert "held until `runner release 1`" in cli("ps").stdout
    waits = cli.start("wait", "1")
    assert waits.stderr is not None
    assert waits.stderr.readline() == "run 1 is held until `runner release 1`\n"
    cli("release", "1")
    assert waits.wait(timeout=20) == 0
    waits.communicate()


def test_limits_order_and_priorities(cli: Cli) -> None:
    (cli.home / "site.yaml").write_text("limits: {runs: 1}\n")
    job = cli.job('name: q\nkind: command\nenv: {F: "${{ run.dir }}/../order"}\nscript: echo $N >> "$F"\n')
    plug = cli.job(command(WAITS, f"env: {{GO: '{cli.work / 'go'}'}}"), "plug.yaml")
    cli("submit", plug)
    wait_for(cli, "one", "ACTIVE")
    numbered = cli.job(job.read_text().replace("$N", "${{ run.id }}"))
    for priority in ("0", "0", "5", "-1"):
        cli("submit", numbered, "--priority", priority)
    assert "limits.runs of the site file is 1" in cli("ps").stdout
    (cli.work / "go").touch()
    cli("wait", "5")
    cli("wait", "2", "3", "4")
    order = (cli.home / "runs" / "order").read_text().split()
    assert order == ["4", "2", "3", "5"]


def test_cpus_and_memory_are_shared_out_in_order(cli: Cli) -> None:
    (cli.home / "site.yaml").write_text("limits: {cpus: 4, memory: 1g}\n")
    more = f"resources: {{cpus: 3}}\nenv: {{GO: '{cli.work / 'go'}'}}"
    big = cli.job(command(WAITS, more), "big.yaml")
    small = cli.job(command("['true']", "resources: {cpus: 1}"), "small.yaml")
    cli("submit", big, big, small)
    wait_for(cli, "one", "QUEUED", 3)
    whys = [cli.steps(str(r))["one"]["why"] for r in (2, 3)]
    assert whys == ["needs 3 cpus, and 1 of 4 are free", "is behind run 2, which waits for cpus or memory"]
    cli("submit", "--wait", cli.job(command("['true']")))  # who asks for nothing does not wait
    (cli.work / "go").touch()
    cli("wait", "1", "2", "3")
    assert (
        "needs 2.0 GiB of memory"
        in cli("submit", cli.job(command("['true']", "resources: {memory: 2g}")), code=3).stderr
    )


def test_exec_and_shell_run_where_the_step_does(cli: Cli) -> None:
    (cli.work / "here.txt").write_text("beside the job")
    cli("submit", cli.job(command("[sleep, '30']", "env: {WORD: of the step}")))
    wait_for(cli, "one", "ACTIVE")
    done = cli("exec", "1", "sh", "-c", 'cat here.txt; echo " $WORD"; exit 7', code=7)
    assert done.stdout == "beside the job of the step\n"
    assert "no step 'two'" in cli("exec", "--step", "two", "1", "true", code=2).stderr
    assert "cannot run nothing-there" in cli("exec", "1", "nothing-there", code=3).stderr
    assert cli("exec", "1", "--", "echo", "--").stdout == "--\n"
    cli("shell", "1", SHELL="/bin/true")
    cli("stop", "1")
    assert "of the step" in cli("exec", "1", "env").stdout


CRASHING = """
import http.server, json, os, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(json.dumps({"data": [{"id": "demo"}]}).encode())
    def log_message(self, *a): pass
print("up", os.getpid(), flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), H).serve_forever()
"""


def test_a_kept_service_is_restarted_by_its_policy(cli: Cli) -> None:
    root = cli.work.parent / "stack"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").symlink_to(Path(cli.program.parent / "python").resolve())
    (root / "bin" / "server.py").write_text(CRASHING)
    (root / "bin" / "vllm").write_text('#!/bin/sh\nexec python "$(dirname "$0")/server.py" "$@"\n')
    (root / "bin" / "vllm").chmod(0o755)
    cli("stack", "adopt", "cpu", root)
    job = "name: s\nkind: serve\nengine: vllm-serve\nkeep: true\nrestart: on-failure\nretry: {backoff: 0.2}\n"
    cli("submit", "--wait", cli.job(job + "args: {model: m, served_model_name: demo}\n"))
    assert cli.kill("server.py serve") == 1
    until = time.monotonic() + 20
    while len(cli.json("show")["attempts"]) < 2 or cli.json("show")["attempts"][-1]["state"] != "READY":
        assert time.monotonic() < until, cli.json("show")
        time.sleep(0.05)
    events = [json.loads(line) for line in (cli.folder() / "events.jsonl").read_text().splitlines()]
    assert "the service is restarted" in [e.get("why") for e in events]
    cli("stop", "1")
    cli.wait_until_idle()


@pytest.mark.parametrize("damage", ["lost", "garbage", "cut"])
def test_recover_makes_the_index_anew_and_goes_on(cli: Cli, damage: str) -> None:
    cli("submit", "--wait", cli.job(PIPE), code=1)
    cli("submit", "--wait", cli.job(MATRIX), "--set", "seed=1")
    cli("submit", "--hold", cli.job(command("['true']")))
    more = "resources: {ports: 1}\nenv: {DIR: '${{ run.dir }}'}"
    cli("submit", cli.job(command("[sh, -c, 'echo once >> \"$DIR/ran\"; sleep 3; exit 5']", more)))
    wait_for(cli, "one", "ACTIVE", 5)
    before = {r["id"]: r for r in cli.json("ps", "--all")["runs"]}
    file = cli.home / "state.db"
    for end in ("-wal", "-shm"):
        (cli.home / f"state.db{end}").unlink(missing_ok=True)
    match damage:
        case "lost":
            file.unlink()
        case "garbage":
            file.write_bytes(b"no database" * 999)
        case "cut":
            file.write_bytes(file.read_bytes()[:5000])
    if damage == "garbage":
        assert "runner recover" in cli("ps", code=5).stderr
    cli("recover")
    cli("wait", "5", code=5)
    assert (cli.folder(5) / "ran").read_text() == "once\n"
    after = {r["id"]: r for r in cli.json("ps", "--all")["runs"]}
    for run in (1, 2, 3, 4):
        for key in ("name", "state", "grp", "point", "priority", "file"):
            assert after[run][key] == before[run][key], key
        states = [[(s["name"], s["state"], s["reason"], s["code"], s["outputs"]) for s in r["steps"]]
                  for r in (before[run], after[run])]  # fmt: skip
        assert states[0] == states[1]
    assert len(cli.json("show", "5")["attempts"]) == 1
    cli("release", "4")
    cli("wait", "4")
    assert cli("recover").stdout == "every run is in the index\n"


def test_a_half_written_run_folder_breaks_nothing(cli: Cli) -> None:
    cli("submit", "--wait", cli.job(command("['true']")))
    (cli.home / "runs" / "000002").mkdir()
    (cli.home / "runs" / "000003").mkdir()
    (cli.home / "runs" / "000003" / "plan.json").write_text('{"plan": ')
    (cli.home / "runs" / "notes.txt").write_text("mine")
    assert len(cli.json("ps", "--all")["runs"]) == 1
    assert "holds no whole run" in cli("recover").stderr
    cli("submit", "--wait", cli.job(command("['true']")), code=None)
    assert {r["state"] for r in cli.json("ps", "--all")["runs"]} == {"SUCCEEDED"}


def test_nothing_is_left_of_a_submit_that_is_killed(cli: Cli) -> None:
    job = cli.job(command("['true']"))
    for delay in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35):
        process = cli.start("submit", "--detach", job)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    cli("ps")
    cli.wait_until_idle()
    assert {r["state"] for r in cli.json("ps", "--all")["runs"]} <= {"SUCCEEDED"}
