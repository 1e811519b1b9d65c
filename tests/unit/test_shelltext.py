"""The plan as text: what a person pastes into a shell does what the runner would do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs import plan_of
from runner.core.shelltext import shell_text

# Like ms-swift's own `swift`: a program that starts the real one, and dies of a TERM without telling it.
SWIFT = """#!{python}
import subprocess, sys
port = sys.argv[sys.argv.index("--port") + 1]
sys.exit(subprocess.run([sys.executable, __file__ + "-server.py", port]).returncode)
"""
SERVER = """
import os, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer

class Models(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.end_headers()

threading.Timer(60, os._exit, [1]).start()  # nothing is left behind by a test that fails
HTTPServer(("127.0.0.1", int(sys.argv[1])), Models).serve_forever()
"""
SERVE = "  - {{name: serve, kind: serve, args: {{model: a/b, port: {port}}}}}\n"


@pytest.fixture
def port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def shell(tmp_path: Path) -> list[str]:
    """bash that finds our `swift` first."""
    swift = tmp_path / "bin" / "swift"
    swift.parent.mkdir()
    swift.write_text(SWIFT.format(python=sys.executable))
    swift.chmod(0o755)
    Path(f"{swift}-server.py").write_text(SERVER)
    return ["env", f"PATH={swift.parent}{os.pathsep}{os.environ['PATH']}", "bash", "-eu"]


def serving(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def until(port: int, wanted: bool) -> None:
    end = time.monotonic() + 20
    while serving(port) is not wanted:
        assert time.monotonic() < end, f"port {port} answers: {not wanted}"
        time.sleep(0.02)


def test_service_ends_with_its_last_consumer(tmp_path: Path, shell: list[str], port: int) -> None:
    job = f"""
name: j
steps:
{SERVE.format(port=port)}
  - name: ask
    kind: command
    env: {{URL: "${{{{ steps.serve.endpoint }}}}"}}
    script: curl -sf -o /dev/null -w '%{{http_code}}' "$URL/v1/models"
"""
    script = shell_text(plan_of(job))
    done = subprocess.run(
        shell, input=script, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("200")
    until(port, False)


def test_service_without_a_consumer_serves_until_it_is_interrupted(
    tmp_path: Path, shell: list[str], port: int
) -> None:
    script = tmp_path / "plan.sh"
    script.write_text(shell_text(plan_of(f"name: j\nsteps:\n{SERVE.format(port=port)}")))
    # A session of its own, as a terminal gives: the interrupt must reach what it is for, not the tests.
    with subprocess.Popen([*shell, str(script)], cwd=tmp_path, start_new_session=True) as running:
        until(port, True)
        time.sleep(1.5)  # longer than the plan sleeps between two looks at the port
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        until(port, False)
        running.wait(20)


def test_python_path_of_the_environment_stays(tmp_path: Path) -> None:
    job = "name: j\nkind: command\nenv: {PYTHONPATH: /opt/m}\ncommand: [printenv, PYTHONPATH]\n"
    for before, after in ((None, "/opt/m"), ("/cann", "/opt/m:/cann")):
        env = {k: v for k, v in {**os.environ, "PYTHONPATH": before}.items() if v is not None}
        done = subprocess.run(
            ["bash", "-eu"], input=shell_text(plan_of(job)), cwd=tmp_path, env=env, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert done.stdout == f"{after}\n"


def test_folders_are_those_of_a_run() -> None:
    job = "name: j\nsteps:\n  - {name: a, kind: command, command: [touch, '${{ run.dir }}/a']}\n"
    assert 'RUNNER_OUTPUT="$RUN/steps/a/output"' in shell_text(plan_of(job))
    assert 'touch "$RUN/a"' in shell_text(plan_of(job))
