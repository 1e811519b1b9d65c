"""Watch a run: its story and what its steps print, as it happens."""

from __future__ import annotations

import contextlib
import select
from collections.abc import Callable, Iterator
from pathlib import Path

from inotify_simple import INotify
from inotify_simple import flags as inotify

from runner.cli.loggroups import LogGroups, log_groups
from runner.cli.screen import Screen
from runner.cli.tail import Tail
from runner.core.metrics import read_rows
from runner.core.progress import progress, progress_text
from runner.store.db import Store
from runner.store.story import read_event

_CHANGES = inotify.MODIFY | inotify.CREATE | inotify.MOVED_TO
_ENDS = ("FAILED", "LOST", "SKIPPED", "CANCELLED", "BACKOFF", "SUCCEEDED")
Until = Callable[[], bool]


def wait_run(store: Store, run: int, until: Until) -> None:
    """Sleep until the condition holds; it is looked at whenever the run's story grows."""
    with _watch(store.folder(run).path) as changed:
        while not until():
            changed(5.0)


class Follower:
    """Prints what all steps of a run print, with the step's name in front when there are several."""

    def __init__(self, store: Store, run: int, screen: Screen, step: str | None = None) -> None:
        self._store = store
        self._folder = store.folder(run)
        self._run = run
        self._screen = screen
        self._only = step
        self._groups: LogGroups | None = log_groups(screen) if step is None else None
        names = [s.name for s in store.steps(run)]
        self._width = max(map(len, names)) if step is None and len(names) > 1 else 0
        self._logs: dict[tuple[str, int], Tail] = {}
        self._rows: dict[str, Tail] = {}
        self._shown: dict[str, str] = {}
        self._going: dict[str, int] = {}  # step -> the attempt that prints
        self._story = Tail(self._folder.events)

    def follow(self, until: Until) -> None:
        """Print until the condition holds, and all that is there then."""
        with _watch(self._folder.path) as changed:
            while True:
                over = until()
                self.print_new()
                if over:
                    if self._groups:
                        self._groups.close()
                    self._screen.done()
                    return
                changed(1.0)

    def print_new(self) -> None:
        """Print what came since the last call, each step's lines between its beginning and its end."""
        for line in self._story.lines():
            if event := read_event(line):
                self._happened(event)
        for attempt in self._store.attempts(self._run):
            if (attempt.step, attempt.n) not in self._logs or self._going.get(attempt.step) == attempt.n:
                self._print_log(attempt.step, attempt.n, final=attempt.state == "ENDED")
        self._screen.live(" | ".join(self._progress(step) for step in self._going if self._progress(step)))

    def skip(self) -> None:
        """Begin at the end of all that is there."""
        for _ in self._story.lines():
            pass
        for attempt in self._store.attempts(self._run):
            path = self._folder.attempt(attempt.step, attempt.n) / "log.txt"
            self._logs[attempt.step, attempt.n] = Tail(path, at_end=True)
            if attempt.state != "ENDED":
                self._going[attempt.step] = attempt.n

    def _happened(self, event: dict[str, object]) -> None:
        step, attempt = event.get("step"), event.get("attempt")
        said = story_line(event) if self._only is None else None
        if not isinstance(step, str) or not isinstance(attempt, int):
            attempt = None
        if event.get("state") == "ACTIVE" and isinstance(step, str) and attempt:
            self._going[step] = attempt
        over = event.get("state") in _ENDS
        if over and isinstance(step, str):
            self._going.pop(step, None)
            if attempt:
                self._print_log(step, attempt, final=True)
            if self._groups:
                self._groups.close()
        if said:
            self._screen.say(said)
        if over and self._groups and event.get("state") in ("FAILED", "LOST"):
            self._groups.error(str(step), said or "")

    def _print_log(self, step: str, attempt: int, *, final: bool) -> None:
        if self._only not in (None, step):
            return
        path = self._folder.attempt(step, attempt) / "log.txt"
        tail = self._logs.setdefault((step, attempt), Tail(path))
        front = f"{step:<{self._width}} | ".encode() if self._width else b""
        for block in tail.blocks(final=final):
            if self._groups:
                self._groups.open(step)
            shown = block if not front else front + block[:-1].replace(b"\n", b"\n" + front) + b"\n"
            self._screen.write(shown)

    def _progress(self, step: str) -> str:
        """The live line of a training; empty for a step that logs no metrics."""
        if not self._screen.is_terminal or self._only not in (None, step):
            return ""
        tail = self._rows.setdefault(step, Tail(self._folder.output(step) / "logging.jsonl"))
        if now := progress(read_rows(tail.lines())):
            self._shown[step] = f"{step} {progress_text(now)}"
        return self._shown.get(step, "")


def story_line(event: dict[str, object]) -> str | None:
    """What happened, for people; None for what needs no line of its own."""
    match event.get("event"), event.get("state"):
        case "step", "ACTIVE":
            again = f" (try {event['attempt']})" if event.get("attempt", 1) != 1 else ""
            return f"==> {event.get('step')}{again}"
        case "step", "READY":
            return f"==> {event.get('step')} is READY"
        case "step", ("FAILED" | "LOST" | "SKIPPED" | "CANCELLED" | "BACKOFF" | "SUCCEEDED") as state:
            said = event.get("message") or (
                f"exit code {event['code']}" if event.get("code") else event.get("reason")
            )
            return f"==> {event.get('step')} {state}" + (f": {said}" if state != "SUCCEEDED" and said else "")
        case "stopping", _:
            return f"==> {event.get('step')} is being stopped ({event.get('why')})"
        case "retried", _:
            return "==> another try"
    return None


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
