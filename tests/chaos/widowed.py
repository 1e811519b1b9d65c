"""Kills the supervisors of attempts: such an attempt is LOST, and all of it has died before the next try."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter

from chaosjobs import ChaosJob, random_job
from livehome import LiveHome, wait_for

_MOST_OPEN = 4


class Widowed:
    """Keeps some runs open, and one supervisor after the other dies."""

    def __init__(self, house: LiveHome, seed: int) -> None:
        self.jobs: dict[str, ChaosJob] = {}
        self.kills: Counter[str] = Counter(entry=0)
        self._house = house
        self._rng = random.Random(seed)

    def rage(self, kills: int, runs: int, seconds: float) -> None:
        """At most so long; as many submits as it takes, `runs` at least."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and (self.kills.total() < kills or len(self.jobs) < runs):
            if not (self._house.home / "state.db").exists() or len(self._house.open_runs()) < _MOST_OPEN:
                self._submit()
            if self.kills.total() < kills:
                self._kill()

    def _submit(self) -> None:
        number = len(self.jobs) + 1
        job = random_job(self._rng, number, beats=True)
        self.jobs[job.name] = job
        path = job.write(self._house.base / "作业 jobs" / job.name, self._house.ledger)
        self._house.finish("submit", "--detach", str(path), job=job.name)

    def _kill(self) -> None:
        """Just after a launch, just after a start or an end, or at any moment."""
        house, rng = self._house, self._rng
        told, size = house.story_size(), house.ledger.stat().st_size
        moment = rng.choice(("story", "ledger", "any"))
        if moment == "story":
            wait_for(lambda: house.story_size() != told, 1.5)
        elif moment == "ledger":
            wait_for(lambda: house.ledger.stat().st_size != size, 1.5)
        time.sleep(rng.uniform(0, 0.4 if moment == "any" else 0.1))
        chosen = house.supervisors()
        if chosen:
            try:
                os.kill(rng.choice(chosen), signal.SIGKILL)
            except ProcessLookupError:
                return
            self.kills["entry"] += 1
