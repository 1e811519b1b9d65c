"""A power loss, again and again: all of the home is killed at once, and what a disk may lose is lost."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from chaosjobs import ChaosJob, random_job
from judge import Verdict
from livehome import LiveHome, wait_for


class Outage:
    """Rounds of submits, a cut, damage, and one `runner ps` that must make it good."""

    def __init__(self, house: LiveHome, seed: int) -> None:
        self.jobs: dict[str, ChaosJob] = {}
        self.kills: Counter[str] = Counter(outage=0)
        self._house = house
        self._rng = random.Random(seed)
        self._keepsakes: list[Path] = []

    def rage(self, kills: int, runs: int, seconds: float) -> None:
        """So many cuts; the submits are spread over them."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.kills.total() < kills:
            for _ in range(-(-runs // kills)):
                self._submit()
            wait_for(lambda: not self._house.open_runs(), self._rng.uniform(0, 2.5))
            self._house.kill_all()
            self.kills["outage"] += 1
            torn = self._damage()
            self._house.finish("ps")
            for run in torn:
                self._house.finish("logs", str(run))
            if self._rng.random() < 0.3:
                wait_for(lambda: not self._house.open_runs(), 60, 0.1)

    def judge(self, verdict: Verdict) -> None:
        """What was in somebody else's folder is still there, and a state.db without its WAL says the same."""
        for path in self._keepsakes:
            if not path.exists():
                verdict.wrong("lost", f"{path} was removed, and no run of the index was in that folder")
        before = self._house.finish("ps", "--all", "--json").said
        wait_for(lambda: not self._house.processes(), 20, 0.1)
        (self._house.home / "state.db-wal").unlink(missing_ok=True)
        after = self._house.finish("ps", "--all", "--json").said
        if before != after or not before:
            verdict.wrong("lost", f"without state.db-wal: {before} became {after}")

    def _submit(self) -> None:
        number = len(self.jobs) + 1
        job = random_job(self._rng, number, beats=True)
        job = replace(job, steps=tuple(replace(s, secret=False) for s in job.steps))
        self.jobs[job.name] = job
        path = job.write(self._house.base / "作业 jobs" / job.name, self._house.ledger)
        if self._rng.random() < 0.3:  # the cut may come while it writes
            self._house.start("submit", self._rng.choice(("--wait", "--follow")), str(path), job=job.name)
        else:
            self._house.finish("submit", "--detach", str(path), job=job.name)

    def _damage(self) -> list[int]:
        """Memory is empty, files that were not synced are short, and what was being written is half there."""
        for path in self._house.held():
            path.unlink()
        torn = []
        for run in self._house.open_runs():
            folder = self._house.home / "runs" / f"{run:06d}"
            if self._rng.random() < 0.5 and (told := (folder / "events.jsonl").read_bytes()):
                (folder / "events.jsonl").write_bytes(told[: -self._rng.randint(1, 20)])
                torn.append(run)
            for here in folder.glob("steps/*/attempts/*"):
                self._tear(here)
        newest = max((self._house.home / "runs").iterdir())
        ahead = newest.with_name(f"{int(newest.name) + 1:06d}")
        lot = self._rng.random()
        if lot < 0.4:
            ahead.mkdir()  # its row was not synced
            if lot < 0.2:
                self._keepsakes.append(ahead / "job.yaml")
                self._keepsakes[-1].write_text("name: mine\n")
        elif lot < 0.7:
            self._half_a_submit()
        return torn

    def _tear(self, attempt: Path) -> None:
        if (attempt / "exit.json").exists():
            return
        lot = self._rng.random()
        if lot < 0.3:
            (attempt / "attempt.json.new").write_text('{"schema": "att')
        if lot < 0.2:
            for name in ("launched.json", "attempt.json"):
                if (attempt / name).exists():
                    (attempt / name).write_text("")
        if 0.1 < lot < 0.4 and (attempt / "started.json").exists():
            (attempt / "started.json").write_text("")

    def _half_a_submit(self) -> None:
        with contextlib.closing(sqlite3.connect(self._house.home / "state.db", timeout=30)) as db, db:
            row = "INSERT INTO runs(name, state, file, created) VALUES ('half', 'NEW', 'half.yaml', ?)"
            run = db.execute(row, (time.time(),)).lastrowid
        folder = self._house.home / "runs" / f"{run:06d}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            (folder / "plan.json").write_text("")
            (folder / "plan.json.new").write_text("{")
