"""The probe as a process, against a real HTTP server on this host."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runner.inside import probe

PROBE = Path(probe.__file__)
THOUGHT = "<think>\n\n</think>\n\n你好，NPU。\n"


class Server(ThreadingHTTPServer):
    """Answers as it is told by the path and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.seen: list[tuple[dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((dict(self.headers), body))
        match self.path:
            case "/v1/chat/completions":
                self.reply(
                    200, {"choices": [{"message": {"content": THOUGHT}}], "usage": {"total_tokens": 9}}
                )
            case "/v1/completions":
                self.reply(200, {"choices": [{"text": "plain"}]})
            case "/busy":
                self.reply(503 if len(self.server.seen) < 2 else 200, {"choices": [{"text": "at last"}]})
            case "/no":
                self.reply(400, {"message": "`nope` is not in the model_list"})
            case "/empty":
                self.reply(200, {"choices": []})
            case "/slow":
                time.sleep(1)
            case "/html":
                self.reply(200, None)

    def reply(self, status: int, value: Any) -> None:
        content = b"<html>" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.shutdown()


def run(tmp_path: Path, request: Any, **env: str) -> tuple[int, str, str, dict[str, Any]]:
    """Give the exit code, stdout, stderr and the out file (empty when there is none)."""
    file, out = tmp_path / "请求 1.json", tmp_path / "deep" / "out.json"
    if isinstance(request, dict):
        body = {"model": "demo", "messages": [{"role": "user", "content": "你好？"}]}
        request = json.dumps({"body": body, "out": str(out)} | request)
    file.write_text(request, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(PROBE), str(file)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **env},
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    written = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    return done.returncode, done.stdout, done.stderr, written


@pytest.mark.parametrize(
    "expect",
    [
        None,
        {"equals": "你好，NPU。"},
        {"equals": f" {THOUGHT}"},
        {"contains": "NPU"},
        {"matches": "^你好.*。$"},
    ],
)
def test_an_answer_as_expected_ends_with_0(tmp_path: Path, server: Server, expect: Any) -> None:
    code, out, _, written = run(tmp_path, {"url": server.url, "expect": expect})
    assert code == 0
    assert "question: 你好？" in out
    assert "answer:   你好，NPU。" in out
    assert written["schema"] == "probe/1"
    assert written["ok"] is True
    assert (written["answer"], written["normalised"]) == (THOUGHT, "你好，NPU。")
    assert (written["status"], written["usage"]) == (200, {"total_tokens": 9})
    assert written["expect"] == expect


@pytest.mark.parametrize("expect", [{"equals": "你好"}, {"contains": "CPU"}, {"matches": "^NPU"}])
def test_another_answer_ends_with_1_and_is_still_recorded(
    tmp_path: Path, server: Server, expect: Any
) -> None:
    code, _, err, written = run(tmp_path, {"url": server.url, "expect": expect})
    assert code == 1
    assert "does not hold" in err
    assert written["ok"] is False
    assert written["answer"] == THOUGHT


def test_a_completion_is_an_answer_too(tmp_path: Path, server: Server) -> None:
    request = {"url": server.url, "path": "/v1/completions", "body": {"prompt": "one"}}
    code, out, _, written = run(tmp_path, request | {"expect": {"equals": "plain"}})
    assert (code, written["answer"]) == (0, "plain")
    assert "question: one" in out


def test_the_key_travels_from_the_environment_into_the_header(tmp_path: Path, server: Server) -> None:
    request = {"url": server.url, "api_key_env": "PROBE_KEY", "headers": {"X-Site": "a"}}
    code, out, err, written = run(tmp_path, request, PROBE_KEY="s3cret")
    assert code == 0
    headers = server.seen[0][0]
    assert (headers["Authorization"], headers["X-Site"]) == ("Bearer s3cret", "a")
    assert "s3cret" not in out + err + json.dumps(written)


def test_a_key_that_is_not_set_is_named(tmp_path: Path, server: Server) -> None:
    code, _, err, _ = run(tmp_path, {"url": server.url, "api_key_env": "PROBE_KEY"}, PROBE_KEY="")
    assert code == 2
    assert "PROBE_KEY is not set" in err
    assert server.seen == []


def test_a_proxy_is_not_asked_for_this_host(tmp_path: Path, server: Server) -> None:
    proxies = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "no_proxy": ""}
    assert run(tmp_path, {"url": server.url}, **proxies)[0] == 0


def test_a_busy_server_is_asked_again(tmp_path: Path, server: Server) -> None:
    code, _, _, written = run(tmp_path, {"url": server.url, "path": "/busy", "attempts": 3})
    assert (code, written["answer"], len(server.seen)) == (0, "at last", 2)


@pytest.mark.parametrize(
    ("path", "said", "status"),
    [
        ("/no", 'HTTP 400 Bad Request: {"message": "`nope` is not in the model_list"}', 400),
        ("/empty", "no choices[0].message.content", 200),
        ("/html", "not JSON: '<html>'", 200),
    ],
)
def test_a_useless_reply_ends_with_3_and_is_not_asked_again(
    tmp_path: Path, server: Server, path: str, said: str, status: int
) -> None:
    code, _, err, written = run(tmp_path, {"url": server.url, "path": path, "attempts": 3})
    assert code == 3
    assert said in err
    assert (written["ok"], written["answer"], written["status"]) == (False, None, status)
    assert len(server.seen) == 1


def test_a_refused_connection_ends_with_3(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        code, _, err, written = run(tmp_path, {"url": url, "attempts": 2})
    assert code == 3
    assert "connection refused" in err
    assert "attempt 2 of 2" in err
    assert written["status"] is None


def test_silence_ends_with_3_after_the_timeout(tmp_path: Path, server: Server) -> None:
    code, _, err, _ = run(tmp_path, {"url": server.url, "path": "/slow", "timeout_s": 0.2})
    assert code == 3
    assert "no answer within 0.2 s" in err


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("{", "not JSON"),
        ("[]", "must be a JSON object, not list"),
        ({"url": "127.0.0.1:8000"}, "url must be"),
        ({"url": "http://a", "body": []}, "body must be"),
        ({"url": "http://a", "body": {"stream": True}}, "stream must not"),
        ({"url": "http://a", "path": "v1"}, "path must begin with /"),
        ({"url": "http://a", "headers": {"a": 1}}, "headers must map"),
        ({"url": "http://a", "headers": [1]}, "headers must map"),
        ({"url": "http://a", "attempts": True}, "attempts must be"),
        ({"url": "http://a", "timeout_s": 0}, "timeout_s must be"),
        ({"url": "http://a", "expect": {"like": "x"}}, "expect must be"),
        ({"url": "http://a", "expect": {"equals": 1}}, "must be a text"),
        ({"url": "http://a", "expect": {"matches": "("}}, "no regular expression"),
        ({"url": "http://a", "expects": {}}, "unknown key 'expects'"),
    ],
)
def test_a_bad_request_file_ends_with_2_and_says_what_is_wrong(
    tmp_path: Path, request_: Any, said: str
) -> None:
    code, _, err, _ = run(tmp_path, request_)
    assert code == 2
    assert said in err


def test_a_missing_request_file_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe.main([str(tmp_path / "none.json")]) == 2
    assert "none.json: cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<think>\n\n</think>\n\nyes", "yes"),
        ("<think></think>yes ", "yes"),
        ("<think>because</think>yes", "<think>because</think>yes"),  # a thought is not debris
    ],
)
def test_only_an_empty_think_block_is_debris(text: str, plain: str) -> None:
    assert probe.normalise(text) == plain
