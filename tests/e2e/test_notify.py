"""Hooks hear of a run's end: what, signed how, and what becomes of a hook that does not take it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cli import Cli

from runner.cli.told import ended_run
from runner.core.plan import Plan, PlannedStep
from runner.store.db import Store

GOOD = "name: good\nkind: command\ncommand: ['true']\n"
BAD = "name: bad\nkind: command\ncommand: [sh, -c, 'exit 3']\n"
TAKEN = {"errcode": 0, "errmsg": "ok", "code": 0, "msg": "success"}


@dataclass
class Heard:
    """A chat program's server: answers in turn what it is told to, the last of it for ever."""

    url: str = ""
    answers: list[tuple[int, object]] = field(default_factory=lambda: [(200, TAKEN)])
    paths: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    pause_s: float = 0.0


@pytest.fixture
def heard() -> Iterator[Heard]:
    made = Heard()

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.times.append(time.monotonic())
            time.sleep(made.pause_s)
            made.paths.append(self.path)
            made.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = made.answers.pop(0) if len(made.answers) > 1 else made.answers[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def site(cli: Cli, **keys: str) -> None:
    (cli.home / "site.yaml").write_text(json.dumps({"notify": keys}))


def with_hook(job: str, **keys: str) -> str:
    return f"{job}notify: {json.dumps(keys)}\n"


def log(cli: Cli) -> str:
    cli.wait_until_idle()
    return (cli.home / "agent.log").read_text()


@pytest.mark.parametrize(
    ("kind", "where"),
    [("dingtalk", ("text", "content")), ("wecom", ("text", "content")), ("feishu", ("content", "text"))],
)
def test_chat_programs_hear_what_failed(cli: Cli, heard: Heard, kind: str, where: tuple[str, str]) -> None:
    site(cli, url=heard.url, kind=kind)
    cli("submit", "--wait", cli.job(BAD), code=3)
    assert log(cli) == ""
    (body,) = heard.bodies
    assert body["msg_type" if kind == "feishu" else "msgtype"] == "text"
    first, step, took = body[where[0]][where[1]].splitlines()
    assert "run 1 (bad) FAILED" in first
    assert step.startswith("step bad: exit code 3")
    assert took.startswith("time: ")


def test_programs_get_facts(cli: Cli, heard: Heard) -> None:
    site(cli, url=heard.url)
    cli("submit", "--wait", cli.job(GOOD))
    cli.wait_until_idle()
    (body,) = heard.bodies
    facts = {"run": 1, "name": "good", "state": "SUCCEEDED", "step": None, "why": None, "loss": None}
    assert {k: body[k] for k in facts} == facts
    assert 0 <= body["seconds"] < 30
    assert body["host"] in body["text"]


def test_dingtalk_is_signed_in_the_address(cli: Cli, heard: Heard) -> None:
    site(cli, url=f"{heard.url}/robot/send?access_token=abc", kind="dingtalk", secret="SEC+1")
    cli("submit", "--wait", cli.job(GOOD))
    assert log(cli) == ""
    (path,) = heard.paths
    query = {k: v[0] for k, v in parse_qs(urlsplit(path).query, strict_parsing=True).items()}
    assert query["access_token"] == "abc"
    assert abs(int(query["timestamp"]) / 1000 - time.time()) < 60
    signed = hmac.new(b"SEC+1", f"{query['timestamp']}\nSEC+1".encode(), hashlib.sha256).digest()
    assert base64.b64decode(query["sign"], validate=True) == signed


def test_feishu_is_signed_in_the_body(cli: Cli, heard: Heard) -> None:
    site(cli, url=heard.url, kind="feishu", secret="demo")
    cli("submit", "--wait", cli.job(GOOD))
    assert log(cli) == ""
    (body,) = heard.bodies
    assert abs(int(body["timestamp"]) - time.time()) < 60
    signed = hmac.new(f"{body['timestamp']}\ndemo".encode(), b"", hashlib.sha256).digest()
    assert base64.b64decode(body["sign"], validate=True) == signed


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("dingtalk", {"errcode": 310000, "errmsg": "sign not match"}, "errcode 310000: sign not match"),
        ("wecom", {"errcode": 93000, "errmsg": "invalid webhook url"}, "errcode 93000: invalid webhook url"),
        ("feishu", {"code": 19021, "msg": "sign match fail"}, "code 19021: sign match fail"),
        ("feishu", b"<html>please log in</html>", "the answer is none of a feishu hook"),
    ],
)
def test_an_error_with_status_200_is_said_once(
    cli: Cli, heard: Heard, kind: str, answer: object, said: str
) -> None:
    heard.answers = [(200, answer)]
    site(cli, url=f"{heard.url}/hook/secret-token-0123456789", kind=kind)
    cli("submit", "--wait", cli.job(GOOD))
    assert log(cli) == f"notify {heard.url}/hook/*** of run 1: {said}\n"
    assert len(heard.bodies) == 1


def test_what_may_pass_is_tried_once_more(cli: Cli, heard: Heard) -> None:
    heard.answers = [(503, {}), (200, TAKEN)]
    site(cli, url=heard.url, kind="wecom")
    cli("submit", "--wait", cli.job(GOOD))
    cli.wait_until_idle()
    assert log(cli) == ""
    first, second = heard.times
    assert 1.9 < second - first < 10
    heard.answers = [(500, {})]
    cli("submit", "--wait", cli.job(GOOD))
    assert "of run 2: HTTP Error 500" in log(cli)
    assert len(heard.times) == 4


def test_what_does_not_pass_is_not_tried_again(cli: Cli, heard: Heard) -> None:
    heard.answers = [(404, {})]
    site(cli, url=heard.url)
    cli("submit", "--wait", cli.job(GOOD))
    assert "of run 1: HTTP Error 404" in log(cli)
    assert len(heard.times) == 1


def test_a_dead_hook_harms_no_run(cli: Cli) -> None:
    site(cli, url="http://127.0.0.1:9/hook?token=t0k3n")
    cli("submit", "--wait", cli.job(GOOD))
    said = log(cli)
    assert said.startswith("notify http://127.0.0.1:9/hook?token=*** of run 1: ")
    assert "t0k3n" not in said


def test_a_slow_hook_delays_no_run(cli: Cli, heard: Heard) -> None:
    heard.pause_s = 8.0
    site(cli, url=heard.url)
    cli("submit", "--wait", cli.job(GOOD))
    cli("submit", "--wait", cli.job(GOOD))
    assert heard.bodies == []
    cli.wait_until_idle(20)
    assert sorted(b["run"] for b in heard.bodies) == [1, 2]


def test_a_jobs_own_hook_is_told_instead_of_the_sites(cli: Cli, heard: Heard) -> None:
    site(cli, url=f"{heard.url}/site")
    cli("submit", "--wait", cli.job(with_hook(GOOD, url=f"{heard.url}/job")))
    cli("submit", "--wait", cli.job(GOOD))
    cli.wait_until_idle()
    assert heard.paths == ["/job", "/site"]


def test_address_and_secret_come_from_the_submitters_environment(cli: Cli, heard: Heard) -> None:
    job = cli.job(with_hook(GOOD, url_env="HOOK", kind="dingtalk", secret_env="HOOK_SECRET"))
    assert "notify needs the secret HOOK," in cli("submit", job, code=3).stderr
    hook = f"{heard.url}/robot/send?access_token=t0k3n-of-the-robot"
    cli("submit", "--wait", job, HOOK=f"{hook}\n", HOOK_SECRET="SECret-of-the-robot")
    assert log(cli) == ""
    (path,) = heard.paths
    query = parse_qs(urlsplit(path).query)
    assert query["access_token"] == ["t0k3n-of-the-robot"]
    assert len(query["sign"]) == 1
    cli.wait_until_idle()
    assert cli.held() == []
    for secret in (b"t0k3n-of-the-robot", b"SECret-of-the-robot"):
        assert [p for p in cli.home.rglob("*") if p.is_file() and secret in p.read_bytes()] == []


def test_an_address_from_the_environment_that_is_none_is_said(cli: Cli) -> None:
    cli("submit", "--wait", cli.job(with_hook(GOOD, url_env="HOOK")), HOOK="ftp://t0k3n")
    assert log(cli) == "notify of run 1: HOOK holds no http address\n"


def test_no_token_is_shown(cli: Cli, heard: Heard) -> None:
    token = "c0ffee0123456789c0ffee"
    job = cli.job(with_hook(GOOD, url=f"{heard.url}/robot/send?access_token={token}", kind="dingtalk"))
    site(cli, url=f"{heard.url}/hook/{token}", kind="feishu", secret=token)
    cli("submit", "--wait", job)
    cli.wait_until_idle()
    assert token in heard.paths[0]
    shown = [cli("plan", job).stdout, cli("plan", "--json", job).stdout, cli("site", "show").stdout]
    shown += [
        cli("site", "show", "--json").stdout,
        cli("show", "1").stdout,
        cli("show", "1", "--json").stdout,
    ]
    shown += [(cli.folder() / "manifest.json").read_text()]
    assert [text for text in shown if token in text] == []
    assert f"{heard.url}/robot/send?access_token=***" in shown[0]
    assert f"{heard.url}/robot/send?access_token=***" in shown[1]
    assert f"{heard.url}/hook/***" in shown[2]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"kind": "feishu"}, "has either 'url' or 'url_env'"),
        ({"url": "https://x.example/", "url_env": "X"}, "has either 'url' or 'url_env'"),
        ({"url": "https://x.example/", "secret_env": "X"}, "a generic hook is not signed"),
        ({"url": "ftp://x.example/"}, "does not fit the pattern"),
        ({"url": "https://x.example/", "kind": "dingding"}, "kind must be one of generic, dingtalk"),
    ],
)
def test_a_wrong_hook_is_a_finding(cli: Cli, keys: dict[str, str], said: str) -> None:
    assert said in cli("check", cli.job(with_hook(GOOD, **keys)), code=2).stderr


def test_the_final_loss_is_told(home: Path) -> None:
    step = PlannedStep(name="train", kind="sft", commands=())
    store = Store(home)
    run = store.add_run(Plan(name="x", stack=None, image=None, generation="cpu", steps=(step,)), "x.yaml")
    store.queue(run)
    for state in ("QUEUED", "ACTIVE", "SUCCEEDED"):
        now = time.time()
        store.move_step(store.steps(run)[0], state, started=now, ended=now if state == "SUCCEEDED" else None)
    kept = store.folder(run).step("train") / "metrics.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 0.125}\n')
    told = ended_run(store, store.run(run))
    store.close()
    assert (told.state, told.loss, told.step) == ("SUCCEEDED", 0.125, None)
