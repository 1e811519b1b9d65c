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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from inotify_simple import INotify
from inotify_simple import flags as inotify

from runner.backends.base import Backend
from runner.engine import Engine, Host
from runner.errors import RunnerError, UnreachableError
from runner.sealing import seal_runs
from runner.store.db import Store

_LONGEST_SLEEP = 30.0
_AGAIN = 2.0
_CHANGES = inotify.MOVED_TO | inotify.CLOSE_WRITE | inotify.CREATE
Setup = Callable[[Path], Host]


def poke(home: Path) -> None:
    """Wake the agent of this home, if there is one."""
    with contextlib.suppress(OSError):
        _poke_file(home).write_text(str(time.time()))


def end_agent(home: Path) -> None:
    """End the agent of this home, if there is one; what it drives goes on."""
    while True:
        with _lock(home) as free:
            if free:
                return
        with contextlib.suppress(OSError, ValueError):
            pid = int((home / "agent.lock").read_text())
            if any(f.readlink() == home / "agent.lock" for f in Path(f"/proc/{pid}/fd").iterdir()):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def has_agent(home: Path) -> bool:
    """Whether a process drives the open runs of this home."""
    try:
        with (home / "agent.lock").open("a") as f:
            fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no room for one either
        return True
    return False


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
                _loop(Engine(store, setup(home)), home)
            finally:
                store.close()
        # a run may have been submitted after the last look and before the lock was free again
        store = Store(home)
        left = store.has_open()
        store.close()
        if not left:
            return


def _loop(engine: Engine, home: Path) -> None:
    watcher = _Watcher(engine.backend, home)
    sealer = _Sealer(home)
    touched: set[int] | None = None
    engine.tidy()
    try:
        while _tick(engine, touched) | sealer.works(engine.store):
            watcher.watch(engine.watched())
            due = engine.next_due()
            pause = _LONGEST_SLEEP if due is None else max(0.0, min(due - time.time(), _LONGEST_SLEEP))
            if engine.waiting_for_others():
                pause = min(pause, 1.0)
            touched = watcher.wait(pause)
    finally:
        watcher.close()


def _tick(engine: Engine, touched: set[int] | None) -> bool:
    """One tick; while the state cannot be written, again and again rather than leave the runs alone."""
    while True:
        try:
            return engine.tick(touched)
        except UnreachableError as e:
            touched = None
            with contextlib.suppress(OSError):
                print(e.message, file=sys.stderr, flush=True)
            time.sleep(_AGAIN)


class _Sealer:
    """Completes the manifests of ended runs in a thread: hashing a model takes minutes."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._busy = False
        self._gave_up = False

    def works(self, store: Store) -> bool:
        """Begin when there is something to seal; whether it is at work."""
        if self._busy:
            return True
        if self._gave_up or not store.unsealed():
            return False
        self._busy = True
        threading.Thread(target=self._seal).start()
        return True

    def _seal(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        try:
            seal_runs(self._home)
        except RunnerError as e:  # the next agent tries again
            self._gave_up = True
            print(e.message, file=sys.stderr, flush=True)
        finally:
            self._busy = False
            poke(self._home)


class _Watcher:
    """Sleeps until a record is written, an `entry` dies, or somebody pokes."""

    def __init__(self, backend: Backend, home: Path) -> None:
        self._backend = backend
        self._inotify = INotify()
        self._folders: dict[Path, tuple[int, int | None, int]] = {}  # watch, pidfd, run
        _poke_file(home).touch()
        self._poked = self._inotify.add_watch(str(_poke_file(home)), inotify.MODIFY | inotify.CLOSE_WRITE)
        self._fresh: set[int] = set()

    def watch(self, folders: Mapping[Path, int]) -> None:
        """Watch exactly these attempts."""
        for gone in self._folders.keys() - folders.keys():
            wd, pidfd, _ = self._folders.pop(gone)
            with contextlib.suppress(OSError):
                self._inotify.rm_watch(wd)
            if pidfd is not None:
                os.close(pidfd)
        self._fresh = set()
        for new in folders.keys() - self._folders.keys():
            wd = -1
            with contextlib.suppress(FileNotFoundError):  # the folder was taken away behind our back
                wd = self._inotify.add_watch(str(new), _CHANGES)
            self._folders[new] = (wd, self._backend.watch(new), folders[new])
            self._fresh.add(folders[new])  # it may have ended between the tick and the watch: look once more

    def wait(self, seconds: float) -> set[int] | None:
        """Until something happened, at most so long; the runs it happened to, None when it may be any."""
        pidfds = {fd: run for _, fd, run in self._folders.values() if fd is not None}
        pause = 0.0 if self._fresh else seconds
        ready, _, _ = select.select([self._inotify.fileno(), *pidfds], [], [], pause)
        if not ready and not self._fresh:
            return None
        touched = self._fresh | {pidfds[fd] for fd in ready if fd in pidfds}
        if self._inotify.fileno() in ready:
            runs = {wd: run for wd, _, run in self._folders.values()}
            for event in self._inotify.read(timeout=0):
                if event.wd == self._poked or event.mask & inotify.Q_OVERFLOW:
                    return None
                if event.wd in runs:
                    touched.add(runs[event.wd])
        return touched

    def close(self) -> None:
        """Let go of all descriptors."""
        self.watch({})
        self._inotify.close()


@contextlib.contextmanager
def _lock(home: Path) -> Iterator[bool]:
    with (home / "agent.lock").open("a+") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        f.truncate(0)
        f.write(str(os.getpid()))
        f.flush()
        yield True


def _poke_file(home: Path) -> Path:
    return home / "poke"
