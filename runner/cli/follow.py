"""Watch a run: its story and what its steps print, as it happens."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from inotify_simple import INotify
from inotify_simple import flags as inotify

from runner.cli.loggroups import LogGroups, log_groups, one_line
from runner.cli.progress import Trainings
from runner.cli.screen import Screen
from runner.cli.tail import Tail
from runner.store.db import Store
from runner.store.story import read_event

_CHANGES = inotify.MODIFY | inotify.CREATE | inotify.MOVED_TO
_ENDS = ("FAILED", "LOST", "SKIPPED", "CANCELLED", "BACKOFF", "SUCCEEDED")
_POLL_S = 0.2  # where the host gives no more watches
_LAST_LINES_S = 1.0  # the story's end is written just after the run has ended
Until = Callable[[], bool]
Changed = Callable[[float], None]


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
        self._groups: LogGroups | None = log_groups(screen)
        names = [s.name for s in store.steps(run)]
        self._width = max(map(len, names)) if step is None and len(names) > 1 else 0
        self._trainings: Trainings | None = None
        self._logs: dict[tuple[str, int], Tail] = {}
        self._printed: set[tuple[str, int]] = set()  # attempts of which all is printed
        self._going: dict[str, int] = {}  # step -> the attempt that prints
        self._told_end = False
        self._story = Tail(self._folder.events)

    def follow(self, until: Until) -> None:
        """Print until the condition holds, and all that is there then."""
        if self._only is None or self._screen.is_terminal:  # the log of one step stays as it is
            self._trainings = Trainings(self._folder, self._screen)
        with _watch(self._folder.path) as changed:
            try:
                while True:
                    over = until()
                    self.print_new()
                    if over:
                        break
                    changed(1.0)
                self._hear_the_end(changed)
            finally:
                self.close()

    def print_new(self, *, unfinished: bool = False) -> None:
        """Print what came since the last call, each step's lines between its beginning and its end."""
        # who is seen to run here has been announced in the story before it is read
        attempts = self._store.attempts(self._run)
        for line in self._story.lines():
            if event := read_event(line):
                self._happened(event)
        for attempt in attempts:
            if attempt.state != "STARTING" or self._going.get(attempt.step) == attempt.n:
                ended = attempt.state == "ENDED"
                self._print_log(attempt.step, attempt.n, final=ended or unfinished)
        if self._trainings:
            self._trainings.show({s: n for s, n in self._going.items() if self._only in (None, s)})

    def skip_to_last(self, count: int) -> None:
        """Begin with the last lines that are there, and without the story so far."""
        attempts = self._store.attempts(self._run)
        for line in self._story.lines():
            self._note(read_event(line) or {})
        for attempt in reversed(attempts):
            key = (attempt.step, attempt.n)
            wanted = self._only in (None, attempt.step) and (count > 0 or attempt.state != "ENDED")
            if wanted:
                self._logs[key] = self._tail(*key)
                count -= self._logs[key].skip_to_last(count)
            else:
                self._printed.add(key)

    def close(self) -> None:
        """Leave the screen, and the CI system's log, as they were found."""
        if self._groups:
            self._groups.close()
        self._screen.done()

    def _hear_the_end(self, changed: Changed) -> None:
        last = time.monotonic() + _LAST_LINES_S
        while not self._told_end and self._store.has_ended(self._run) and time.monotonic() < last:
            changed(0.1)
            self.print_new()

    def _note(self, event: dict[str, object]) -> tuple[str | None, int | None]:
        """Keep in mind which attempt of a step goes; the step and the attempt that an event is about."""
        step, attempt, state = event.get("step"), event.get("attempt"), event.get("state")
        self._told_end = event.get("event") == "ended"
        if not isinstance(step, str):
            return None, None
        if state in _ENDS:
            self._going.pop(step, None)
        if not isinstance(attempt, int):
            return step, None
        if state == "ACTIVE":
            self._going[step] = attempt
        return step, attempt

    def _happened(self, event: dict[str, object]) -> None:
        step, attempt = self._note(event)
        said = story_line(event) if self._only is None else None
        over = event.get("state") in _ENDS
        if over and step and attempt:
            self._print_log(step, attempt, final=True)
        if over and self._groups:
            self._groups.close()
        if said:
            self._screen.say(said)
        if said and step and self._groups and event.get("state") in ("FAILED", "LOST"):
            self._groups.error(step, said)

    def _print_log(self, step: str, attempt: int, *, final: bool) -> None:
        key = (step, attempt)
        if self._only not in (None, step) or key in self._printed:
            return
        tail = self._logs.get(key) or self._logs.setdefault(key, self._tail(*key))
        for block in tail.blocks(final=final):
            if self._groups:
                self._groups.open(step)
            self._screen.write(self._with_name(step, block))
        if final:
            if self._trainings:
                self._trainings.ended(step, attempt)
            self._printed.add(key)
            self._logs.pop(key).close()

    def _with_name(self, step: str, block: bytes) -> bytes:
        if not self._width:
            return block
        front = f"{step:<{self._width}} | ".encode()
        return front + block.removesuffix(b"\n").replace(b"\n", b"\n" + front) + b"\n"

    def _tail(self, step: str, attempt: int) -> Tail:
        return Tail(self._folder.attempt(step, attempt) / "log.txt")


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
            more = f": {one_line(str(said))}" if state != "SUCCEEDED" and said else ""
            return f"==> {event.get('step')} {state}{more}"
        case "stopping", _:
            return f"==> {event.get('step')} is being stopped ({event.get('why')})"
        case "retried", _:
            return "==> another try"
    return None


@contextlib.contextmanager
def _watch(folder: Path) -> Iterator[Changed]:
    watcher: INotify | None = None
    with contextlib.suppress(OSError):  # too many are open on this host
        watcher = INotify()
    watched: set[Path] = set()

    def changed(seconds: float) -> None:
        if watcher is None:
            time.sleep(min(seconds, _POLL_S))
            return
        for path in {folder, *folder.glob("steps/*/attempts/*")} - watched:
            try:
                watcher.add_watch(str(path), _CHANGES)
            except OSError:  # taken away behind our back, or one watch too many
                seconds = min(seconds, _POLL_S)
            else:
                watched.add(path)
                seconds = 0.0
        ready, _, _ = select.select([watcher.fileno()], [], [], seconds)
        if ready:
            watcher.read(timeout=0)

    try:
        yield changed
    finally:
        if watcher is not None:
            watcher.close()
