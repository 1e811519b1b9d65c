"""READY, as the supervisor sees it: an answer with our model from a listener of the attempt's own tree."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest
from attempt import Begin

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
    assert attempt.record("ready")["port"] == port
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
