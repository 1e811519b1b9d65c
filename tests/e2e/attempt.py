"""One attempt under a real `entry`, without an engine around it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import runner
from runner.core.shellattempt import shell_attempt

ENTRY = Path(runner.__file__).parent / "entry"
FOLDER = "尝试 'one' & \"two\" $HOME\nline"


class Attempt:
    """One attempt folder and the `entry` on it."""

    def __init__(
        self, folder: Path, entry: list[str], commands: list[dict[str, Any]], spec: dict[str, Any]
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.entry = [*entry, str(folder)]
        self.id = f"test.{os.getpid()}.{folder.parent.name}"
        record: dict[str, Any] = {
            "schema": "attempt/1", "id": self.id, "commands": commands, "cwd": str(folder), "env": {},
            "path_prepend": [], "source": [], "source_optional": [], "secrets": None, "timeout_s": None,
            "grace_s": 5.0, "stop": "tree", "log": "log.txt", "ready": None, "linger_s": 0.2, **spec,
        }  # fmt: skip
        (folder / "attempt.json").write_text(json.dumps(record))
        (folder / "attempt.sh").write_text(shell_attempt(record))
        self.process = subprocess.Popen(self.entry, start_new_session=True, stderr=subprocess.PIPE, text=True)

    def end(self, seconds: float = 20) -> dict[str, Any]:
        """exit.json, once `entry` is gone and has left nothing alive."""
        self.process.communicate(timeout=seconds)
        assert self.living() == []
        assert not list(self.folder.glob(".*.part"))
        return self.record("exit")

    def record(self, name: str) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        assert record["schema"] == f"{name}/1"
        return record

    def log(self) -> str:
        return (self.folder / "log.txt").read_text()

    def said(self) -> list[str]:
        """What the commands have printed, whole lines only."""
        lines = self.log().splitlines(keepends=True)
        return [s[:-1] for s in lines if s.endswith("\n") and not s.startswith("[entry]")]

    def until(self, *texts: str, seconds: float = 10) -> None:
        """Wait until the commands, or `entry` itself, have said this."""
        until = time.monotonic() + seconds
        while not (self.folder / "log.txt").exists() or not all(
            t in self.said() or f"[entry] {t}" in self.log() for t in texts
        ):
            assert time.monotonic() < until, self.log()
            time.sleep(0.01)

    def term(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def living(self) -> list[int]:
        """Every process with this attempt in its environment."""
        mark = f"ASCEND_RUNNER_ATTEMPT={self.id}".encode()
        found = []
        for proc in (p for p in Path("/proc").iterdir() if p.name.isdigit()):
            try:
                if mark in (proc / "environ").read_bytes().split(b"\0"):
                    found.append(int(proc.name))
            except OSError:
                continue
        return found


Begin = Callable[..., Attempt]


def beginner(tmp_path: Path, *program: str, file: str = "") -> Iterator[Begin]:
    """Start attempts under an `entry` that was copied elsewhere, as it is shipped."""
    entry = tmp_path / "shipped elsewhere" / "entry"
    shutil.copytree(ENTRY, entry, ignore=shutil.ignore_patterns("__pycache__"))
    started: list[Attempt] = []

    def start(*scripts: str | list[str], own: dict[str, str | None] | None = None, **spec: Any) -> Attempt:
        argvs = [["sh", "-c", s] if isinstance(s, str) else s for s in scripts]
        commands = [{"name": f"c{i}", "argv": argv, "env": own or {}} for i, argv in enumerate(argvs)]
        started.append(Attempt(tmp_path / FOLDER, [*program, str(entry / file)], commands, spec))
        return started[-1]

    yield start
    for attempt in started:
        for pid in attempt.living():
            os.kill(pid, signal.SIGKILL)
        with attempt.process:
            attempt.process.kill()
