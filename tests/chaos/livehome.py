"""A state folder of its own, the real CLI on it, and who of its processes can be killed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from chaosjobs import SECRET


@dataclass
class Talk:
    """One `runner` command as a process; what it says goes to files, so that nobody waits for a pipe."""

    args: tuple[str, ...]
    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    job: str | None = None

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    @property
    def killed(self) -> bool:
        """Whether a KILL ended it."""
        return self.process.poll() == -signal.SIGKILL

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self.out.read_text(encoding="utf-8", errors="replace")

    def run(self) -> int | None:
        """The number of the run that it has acknowledged."""
        first = self.said.partition("\n")
        number = first[0].removeprefix("run ").partition(":")[0]
        return int(number) if first[1] and first[0].startswith("run ") and number.isdecimal() else None

    def kill(self) -> bool:
        """KILL it; False when it had ended before."""
        if not self.alive:
            return False
        self.process.kill()
        self.process.wait()
        return self.killed


class LiveHome:
    """RUNNER_HOME with a space and Chinese characters in its path, and a ledger beside it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "家 of chaos"
        self.ledger = base / "账 ledger.txt"
        self.secret = uuid.uuid4().hex
        self.talks: list[Talk] = []
        self._program = Path(sys.executable).parent / "runner"
        for folder in (self.home, base / "said"):
            folder.mkdir(parents=True)
        self.ledger.touch()

    @property
    def env(self) -> dict[str, str]:
        """What every command gets; RUNNER_SITE so that no site file of this machine takes part."""
        more = {"RUNNER_HOME": str(self.home), "RUNNER_SITE": str(self.home / "site.yaml")}
        return {**os.environ, **more, SECRET: self.secret}

    def start(self, *args: str, job: str | None = None) -> Talk:
        """Start a command."""
        name = self.base / "said" / f"{len(self.talks):04d}-{args[0]}"
        out, err = name.with_suffix(".out"), name.with_suffix(".err")
        with out.open("wb") as o, err.open("wb") as e:
            process = subprocess.Popen(
                [self._program, *args], env=self.env, cwd=self.base,
                stdin=subprocess.DEVNULL, stdout=o, stderr=e,
            )  # fmt: skip
        self.talks.append(Talk(args, process, out, err, job))
        return self.talks[-1]

    def finish(self, *args: str, job: str | None = None, seconds: float = 60) -> Talk:
        """A command to its end."""
        talk = self.start(*args, job=job)
        talk.process.wait(timeout=seconds)
        return talk

    def show(self, run: int) -> dict[str, Any]:
        """`runner show --json`."""
        told: dict[str, Any] = json.loads(self.finish("show", str(run), "--json").said)
        return told

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Read the index without waking anybody."""
        uri = f"file:{quote(str(self.home / 'state.db'))}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=30)) as db:
            return db.execute(query).fetchall()

    def open_runs(self) -> list[int]:
        """The runs that have not ended."""
        return [r[0] for r in self.rows("SELECT id FROM runs WHERE ended IS NULL AND state != 'NEW'")]

    def agent(self) -> int | None:
        """Who holds agent.lock."""
        try:
            facts = (self.home / "agent.lock").stat()
        except FileNotFoundError:
            return None
        mark = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if "FLOCK" in fields and mark in fields and "->" not in fields:
                return int(fields[fields.index(mark) - 1])
        return None

    def kill_agent(self) -> bool:
        """KILL the agent; False when there is none."""
        pid = self.agent()
        if pid is None:
            return False
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            if self.agent() != pid:  # the number may be somebody else's by now
                return False
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            os.close(fd)
        return True

    def processes(self) -> dict[int, str]:
        """Command lines of the living processes of this home: its steps', its supervisors' and its agent."""
        mark = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:8]
        signs = (f"ASCEND_RUNNER_ATTEMPT={mark}.".encode(), os.fsencode(f"RUNNER_HOME={self.home}\0"))
        found = {}
        for proc in (p for p in Path("/proc").iterdir() if p.name.isdigit()):
            with contextlib.suppress(OSError):
                line, environ = (proc / "cmdline").read_bytes(), (proc / "environ").read_bytes()
                mine = os.fsencode(self.home) in line or any(s in environ for s in signs)
                if mine and line and int(proc.name) != os.getpid():  # a zombie has no command line
                    found[int(proc.name)] = os.fsdecode(line).replace("\0", " ")
        return found

    def supervisors(self) -> list[int]:
        """The living `entry` processes."""
        return [pid for pid, line in self.processes().items() if "/runner/entry " in line]

    def kill_all(self) -> int:
        """KILL every process of this home, until none is left; how many."""
        killed = set()
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        return len(killed)

    def held(self) -> list[Path]:
        """What is left in memory of the runs of this home."""
        mark = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return [p for p in Path("/dev/shm").glob("ascend-runner-*") if mark in p.name or self._has_secret(p)]

    def _has_secret(self, path: Path) -> bool:
        with contextlib.suppress(OSError):
            return self.secret.encode() in path.read_bytes()
        return False

    def story_size(self) -> int:
        """How much the stories of the newest runs have grown: it changes just before and after a launch."""
        runs = sorted((self.home / "runs").iterdir())[-10:] if (self.home / "runs").is_dir() else []
        return sum(p.stat().st_size for r in runs if (p := r / "events.jsonl").exists())


def wait_for(happened: Callable[[], object], seconds: float, every: float = 0.001) -> bool:
    """Look again and again; False when it has not happened in time."""
    until = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(every)
    return True


@contextlib.contextmanager
def cleared(house: LiveHome) -> Iterator[LiveHome]:
    """Whatever happens, no process of this home and nothing of it in memory stays behind."""
    try:
        yield house
    finally:
        house.kill_all()
        for path in house.held():
            path.unlink(missing_ok=True)
