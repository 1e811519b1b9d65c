"""The process that drives open runs: one for a home, woken by events, gone when nothing is left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from inotify_simple import INotify
from inotify_simple import flags as inotify

from runner.backends.base import Backend
from runner.engine import Ended, Engine
from runner.errors import UnreachableError
from runner.store.db import Store

_LONGEST_SLEEP = 30.0
_AGAIN = 2.0
_CHANGES = inotify.MOVED_TO | inotify.CLOSE_WRITE | inotify.CREATE
Setup = Callable[[Path], tuple[Backend, Ended]]  # what this host runs attempts with, and whom it tells


def poke(home: Path) -> None:
    """Wake the agent of this home, if there is one."""
    with contextlib.suppress(OSError):
        _poke_file(home).write_text(str(time.time()))


def ensure_agent(home: Path, setup: Setup) -> None:
    """Leave one agent behind: the one that is there, or a new process of its own session."""
    poke(home)
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    _become_agent(home, setup)


def _become_agent(home: Path, setup: Setup) -> None:
    code = 1
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        quiet = os.open(os.devnull, os.O_RDWR)
        log = os.open(home / "agent.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for fd, target in ((quiet, 0), (log, 1), (log, 2)):
            os.dup2(fd, target)
        os.closerange(3, 256)
        os.chdir("/")
        drive(home, setup)
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join()
        code = 0
    except BaseException:  # noqa: BLE001 - the last frame of a process without a terminal
        with contextlib.suppress(OSError):
            traceback.print_exc(file=sys.stderr)
            sys.stderr.flush()
    finally:
        os._exit(code)


def drive(home: Path, setup: Setup) -> None:
    """Drive all open runs to their end, unless another process does."""
    while True:
        with _lock(home) as mine:
            if not mine:
                return
            store = Store(home)
            try:
                _loop(Engine(store, *setup(home)), home)
            finally:
                store.close()
        # a run may have been submitted after the last look and before the lock was free again
        store = Store(home)
        left = bool(store.open_runs())
        store.close()
        if not left:
            return


def _loop(engine: Engine, home: Path) -> None:
    watcher = _Watcher(engine.backend, home)
    engine.tidy()
    try:
        while _tick(engine):
            watcher.watch(engine.watched())
            due = engine.next_due()
            pause = _LONGEST_SLEEP if due is None else max(0.0, min(due - time.time(), _LONGEST_SLEEP))
            if engine.waiting_for_others():
                pause = min(pause, 1.0)
            watcher.wait(pause)
    finally:
        watcher.close()


def _tick(engine: Engine) -> bool:
    """One tick; while the state cannot be written, again and again rather than leave the runs alone."""
    while True:
        try:
            return engine.tick()
        except UnreachableError as e:
            with contextlib.suppress(OSError):
                print(e.message, file=sys.stderr, flush=True)
            time.sleep(_AGAIN)


class _Watcher:
    """Sleeps until a record is written, an `entry` dies, or somebody pokes."""

    def __init__(self, backend: Backend, home: Path) -> None:
        self._backend = backend
        self._inotify = INotify()
        self._folders: dict[Path, tuple[int, int | None]] = {}
        _poke_file(home).touch()
        self._inotify.add_watch(str(_poke_file(home)), inotify.MODIFY | inotify.CLOSE_WRITE)
        self._fresh = False

    def watch(self, folders: list[Path]) -> None:
        """Watch exactly these attempts."""
        for gone in self._folders.keys() - set(folders):
            wd, pidfd = self._folders.pop(gone)
            with contextlib.suppress(OSError):
                self._inotify.rm_watch(wd)
            if pidfd is not None:
                os.close(pidfd)
        self._fresh = False
        for new in set(folders) - self._folders.keys():
            wd = self._inotify.add_watch(str(new), _CHANGES)
            self._folders[new] = (wd, self._backend.watch(new))
            self._fresh = True  # it may have ended between the tick and the watch: look once more

    def wait(self, seconds: float) -> None:
        """Until something happened, at most so long."""
        if self._fresh:
            seconds = 0.0
        pidfds = [fd for _, fd in self._folders.values() if fd is not None]
        ready, _, _ = select.select([self._inotify.fileno(), *pidfds], [], [], seconds)
        if self._inotify.fileno() in ready:
            self._inotify.read(timeout=0)

    def close(self) -> None:
        """Let go of all descriptors."""
        self.watch([])
        self._inotify.close()


@contextlib.contextmanager
def _lock(home: Path) -> Iterator[bool]:
    with (home / "agent.lock").open("w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _poke_file(home: Path) -> Path:
    return home / "poke"
