"""Watch a run: its story and what its steps print, as it happens."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
from collections.abc import Callable, Iterator
from pathlib import Path

from inotify_simple import INotify
from inotify_simple import flags as inotify

from runner.store.db import Store

_CHANGES = inotify.MODIFY | inotify.CREATE | inotify.MOVED_TO
_CHUNK = 1 << 20
Until = Callable[[], bool]


def wait_run(store: Store, run: int, until: Until) -> None:
    """Sleep until the condition holds; it is looked at whenever the run's story grows."""
    with _watch(store.folder(run).path) as changed:
        while not until():
            changed(5.0)


class Follower:
    """Prints the lines of all steps of a run, each with its step's name in front when there are several."""

    def __init__(self, store: Store, run: int, write: Callable[[str], None], step: str | None = None) -> None:
        self._store = store
        self._run = run
        self._write = write
        self._only = step
        names = [s.name for s in store.steps(run)]
        self._width = max(map(len, names)) if step is None and len(names) > 1 else 0
        self._logs: dict[tuple[str, int], _Tail] = {}
        self._story = _Tail(store.folder(run).events)

    def follow(self, until: Until) -> None:
        """Print until the condition holds, and all that is there then."""
        with _watch(self._store.folder(self._run).path) as changed:
            while True:
                over = until()
                self.print_new()
                if over:
                    return
                changed(1.0)

    def print_new(self) -> None:
        """Print what came since the last call."""
        events = [json.loads(line) for line in self._story.lines(final=False)]
        for attempt in self._store.attempts(self._run):
            if self._only in (None, attempt.step):
                path = self._store.folder(self._run).attempt(attempt.step, attempt.n) / "log.txt"
                tail = self._logs.setdefault((attempt.step, attempt.n), _Tail(path))
                front = f"{attempt.step:<{self._width}} | " if self._width else ""
                for line in tail.lines(final=attempt.state == "ENDED"):
                    self._write(front + line)
        for event in events:
            if self._only is None and (said := story_line(event)):
                self._write(said)


def story_line(event: dict[str, object]) -> str | None:
    """What happened, for people; None for what needs no line of its own."""
    match event.get("event"), event.get("state"):
        case "step", "ACTIVE":
            again = f" (try {event['attempt']})" if event.get("attempt", 1) != 1 else ""
            return f"==> {event['step']}{again}"
        case "step", "READY":
            return f"==> {event['step']} is READY"
        case "step", ("FAILED" | "LOST" | "SKIPPED" | "CANCELLED" | "BACKOFF" | "SUCCEEDED") as state:
            said = event.get("message") or (
                f"exit code {event['code']}" if event.get("code") else event.get("reason")
            )
            return f"==> {event['step']} {state}" + (f": {said}" if state != "SUCCEEDED" and said else "")
        case "stopping", _:
            return f"==> {event['step']} is being stopped ({event['why']})"
    return None


class _Tail:
    """A growing text file, line by line; of a progress bar only the last state of its line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rest = b""

    def lines(self, *, final: bool) -> Iterator[str]:
        """The whole lines since the last call, and with `final` the unfinished one too."""
        try:
            with self._path.open("rb") as f:
                f.seek(self._at)
                while chunk := f.read(_CHUNK):
                    self._at += len(chunk)
                    *whole, self._rest = (self._rest + chunk).split(b"\n")
                    yield from map(_shown, whole)
        except FileNotFoundError:
            return
        if final and self._rest:
            rest, self._rest = self._rest, b""
            yield _shown(rest)


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r")
    return re.split(r"\r", text)[-1]


@contextlib.contextmanager
def _watch(folder: Path) -> Iterator[Callable[[float], None]]:
    watcher = INotify()
    watched: set[Path] = set()

    def changed(seconds: float) -> None:
        for path in [folder, *folder.glob("steps/*/attempts/*")]:
            if path not in watched:
                with contextlib.suppress(FileNotFoundError):  # taken away behind our back
                    watcher.add_watch(str(path), _CHANGES)
                watched.add(path)
                seconds = 0.0
        ready, _, _ = select.select([watcher.fileno()], [], [], seconds)
        if ready:
            watcher.read(timeout=0)

    try:
        yield changed
    finally:
        watcher.close()


def wants_color() -> bool:
    """Whether a person looks at the output."""
    return os.isatty(1) and "NO_COLOR" not in os.environ
