"""What the site file says reaches the steps, and its hook hears of a run's end."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from cli import Cli

from runner.notify import message


@pytest.fixture
def heard() -> Iterator[tuple[str, list[Any]]]:
    """A hook's address, and what was posted to it."""
    bodies: list[Any] = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", bodies
    server.shutdown()
    server.server_close()
    thread.join()


def test_sites_variables_reach_the_steps_and_a_jobs_own_win(cli: Cli) -> None:
    (cli.home / "site.yaml").write_text("""
caches: {huggingface: ~/hf, modelscope: /data/ms}
mirrors: {hf_endpoint: "https://mirror.example"}
proxies: {http: "http://proxy.example:3128"}
offline: true
""")
    job = "name: x\nkind: command\ncommand: [env]\nenv: {MODELSCOPE_CACHE: /mine}\n"
    cli("submit", "--wait", cli.job(job), HOME="/home/me", HF_HOME="/elsewhere")
    env = dict(line.split("=", 1) for line in cli("logs").stdout.splitlines() if "=" in line)
    assert env["HF_HOME"] == "/home/me/hf"
    assert env["MODELSCOPE_CACHE"] == "/mine"
    assert (env["HF_ENDPOINT"], env["HF_HUB_OFFLINE"]) == ("https://mirror.example", "1")
    assert env["http_proxy"] == env["HTTP_PROXY"] == "http://proxy.example:3128"
    assert "127.0.0.1" in env["no_proxy"]


def test_hook_hears_of_the_end(cli: Cli, heard: tuple[str, list[Any]]) -> None:
    url, bodies = heard
    (cli.home / "site.yaml").write_text(f"notify: {{url: '{url}', kind: feishu}}\n")
    cli("submit", "--wait", cli.job("name: x\nkind: command\ncommand: ['false']\n"), code=1)
    cli.wait_until_idle()
    (body,) = bodies
    assert body["msg_type"] == "text"
    assert "run 1 (x) FAILED" in body["content"]["text"]


def test_dead_hook_harms_no_run(cli: Cli) -> None:
    (cli.home / "site.yaml").write_text("notify: {url: 'http://127.0.0.1:9/'}\n")
    cli("submit", "--wait", cli.job("name: x\nkind: command\ncommand: ['true']\n"))
    cli.wait_until_idle()
    assert "notify http://127.0.0.1:9/" in (cli.home / "agent.log").read_text()


@pytest.mark.parametrize("kind", ["generic", "dingtalk", "feishu", "wecom"])
def test_every_kind_of_hook_names_the_run(kind: str) -> None:
    assert "run 7 (demo) SUCCEEDED" in json.dumps(message(kind, 7, "demo", "SUCCEEDED"))
