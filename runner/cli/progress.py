"""How far the trainings of a run have come: live lines on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping

from runner.cli.screen import Screen
from runner.cli.tail import Tail
from runner.core.metrics import read_rows
from runner.core.progress import Progress, progress, progress_text, worth_a_line
from runner.store.folders import RunFolder
from runner.store.metrics import metrics_log


class Trainings:
    """What the steps that log metrics say of themselves, as long as they go."""

    def __init__(self, folder: RunFolder, screen: Screen) -> None:
        self._folder = folder
        self._screen = screen
        self._tails: dict[tuple[str, int], Tail] = {}
        self._ended: set[tuple[str, int]] = set()
        self._now: dict[str, Progress] = {}
        self._said: dict[str, tuple[float, Progress]] = {}

    def show(self, going: Mapping[str, int]) -> None:
        """Show the steps that go, each by its newest attempt."""
        for step, attempt in going.items():
            self._look(step, attempt)
        if self._screen.is_terminal:
            known = [(step, self._now[step]) for step in going if step in self._now]
            self._screen.live([f"{step} {progress_text(now)}" for step, now in known])
            return
        for step in going:
            then, said = self._said.get(step, (0.0, None))
            now = self._now.get(step)
            if now and worth_a_line(now, said, time.monotonic() - then):
                self._say(step, now)

    def ended(self, step: str, attempt: int) -> None:
        """Say the last of a step whose attempt has ended, and forget it."""
        self._ended.add((step, attempt))
        if (step, attempt) not in self._tails:
            return
        self._look(step, attempt)
        now = self._now.pop(step, None)
        _, said = self._said.get(step, (0.0, None))
        if now and now != said and not self._screen.is_terminal:
            self._say(step, now)
        self._said.pop(step, None)
        self._tails.pop((step, attempt)).close()

    def _say(self, step: str, now: Progress) -> None:
        self._said[step] = (time.monotonic(), now)
        self._screen.say(f"{step}: {progress_text(now, drawn=False)}")

    def _look(self, step: str, attempt: int) -> None:
        tail = self._tails.get((step, attempt)) or self._begun(step, attempt)
        if tail is None:
            return
        if now := progress(read_rows(tail.lines()), self._now.get(step)):
            self._now[step] = now

    def _begun(self, step: str, attempt: int) -> Tail | None:
        """The log of this attempt; an older one is what another run or attempt has left there."""
        if (step, attempt) in self._ended:
            return None
        log = metrics_log(self._folder, step)
        try:
            if log.stat().st_mtime < (self._folder.attempt(step, attempt) / "attempt.json").stat().st_mtime:
                return None
        except (OSError, ValueError):  # ValueError: no file can have this name
            return None
        return self._tails.setdefault((step, attempt), Tail(log))
