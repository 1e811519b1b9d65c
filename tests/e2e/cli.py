"""The real command line as a process."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cli:
    """`runner` with a home and a working folder of its own."""

    program: Path
    home: Path
    work: Path

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            "RUNNER_HOME": str(self.home),
            "RUNNER_SITE": str(self.home / "site.yaml"),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
        }

    def __call__(
        self, *args: str | Path, code: int | None = 0, timeout: float = 60, **env: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.program, *args], env={**self.env, **env}, cwd=self.work, capture_output=True, text=True,
            timeout=timeout, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        if code is not None:
            assert done.returncode == code, (
                f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}{self.tail()}"
            )
        return done

    def start(self, *args: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.program, *args], env=self.env, cwd=self.work, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def job(self, text: str, name: str = "job.yaml") -> Path:
        path = self.work / name
        path.write_text(text, encoding="utf-8")
        return path

    def json(self, *args: str | Path) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self(*args, "--json").stdout)
        return value

    def steps(self, run: str = "1") -> dict[str, dict[str, Any]]:
        return {s["name"]: s for s in self.json("show", run)["steps"]}

    def folder(self, run: int = 1) -> Path:
        return self.home / "runs" / f"{run:06d}"

    def log(self, step: str, n: int = 1, run: int = 1) -> Path:
        return self.folder(run) / "steps" / step / "attempts" / str(n) / "log.txt"

    def tail(self) -> str:
        """The ends of all logs, for a failed assertion."""
        logs = sorted(self.home.glob("runs/*/steps/*/attempts/*/log.txt"))
        return "".join(f"\n--- {p.parents[2].name}\n{p.read_text(errors='replace')[-3000:]}" for p in logs)

    def processes(self) -> dict[int, str]:
        """Command lines of the living processes of this home: its steps', its supervisors' and its agent."""
        home = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:8]
        marks = (f"ASCEND_RUNNER_ATTEMPT={home}.".encode(), os.fsencode(f"RUNNER_HOME={self.home}\0"))
        found = {}
        for proc in (p for p in Path("/proc").iterdir() if p.name.isdigit()):
            with contextlib.suppress(OSError):
                line = (proc / "cmdline").read_bytes()
                mine = (
                    any(m in (proc / "environ").read_bytes() for m in marks) or os.fsencode(self.home) in line
                )
                if mine and line and int(proc.name) != os.getpid():  # a zombie has no command line
                    found[int(proc.name)] = os.fsdecode(line).replace("\0", " ")
        return found

    def held(self) -> list[Path]:
        """What is held in memory of the runs of this home."""
        home = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return list(Path("/dev/shm").glob(f"ascend-runner-{home}-*"))

    def kill(self, word: str) -> int:
        """KILL every process of ours with this word in its command line; how many."""
        chosen = [pid for pid, line in self.processes().items() if word in line]
        for pid in chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(chosen)

    def wait_until_idle(self, seconds: float = 10) -> None:
        until = time.monotonic() + seconds
        while left := self.processes():
            assert time.monotonic() < until, left
            time.sleep(0.05)

    def stop_all(self) -> None:
        if (self.home / "state.db").exists():
            for run in self.json("ps")["runs"]:
                self("stop", str(run["id"]), code=None)
            self.wait_until_idle(20)
