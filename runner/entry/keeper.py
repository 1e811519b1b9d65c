"""The one owner of an attempt's process tree."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shlex
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from .end import read_status, sign, torchrun_codes
from .record import record
from .spec import EntryError, changed
from .tree import descendants, send, show, trainers

NEVER, LEFTOVER_GRACE_S, AGAIN_S = float("inf"), 5.0, 5.0


class Keeper:
    """The one owner of an attempt's process tree: starts, waits, stops, and knows when nothing is left."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.main, self.kills, self.grace = folder, 2, 0, 0, 0.0
        self.spec: dict[str, Any] = {}
        self.commands: list[dict[str, Any]] = []
        self.ranks: dict[str, int] = {}
        self.stop: dict[str, Any] | None = None
        self.hurried = False
        self.intent: tuple[str, str] | None = None  # a reason that beats every exit code, and its message
        self.verdict: tuple[str, str] | None = None  # what the watch of the port found
        self.asked: list[int] = []  # signals that mean stop; the second one ends the grace
        self.statuses: dict[int, int] = {}
        self.termed: dict[int, int] = {}  # pid -> start time
        self.deadline = self.term_at = self.kill_at = NEVER
        self.wake_r, self.wake_w = os.pipe()
        os.set_blocking(self.wake_r, False)
        os.set_blocking(self.wake_w, False)
        signal.set_wakeup_fd(self.wake_w, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda n, _: self.asked.append(n))
        for number in (signal.SIGCHLD, signal.SIGHUP):  # SIG_IGN would be inherited by the commands
            signal.signal(number, lambda *_: None)

    def open(self, spec: dict[str, Any]) -> None:
        """Open the log and become the one to whom all orphans below come."""
        self.spec, path = spec, self.folder / spec["log"]
        try:
            self.log = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise EntryError(f"log {path}: {error.strerror}") from None
        if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0):  # PR_SET_CHILD_SUBREAPER
            raise EntryError("the kernel refuses PR_SET_CHILD_SUBREAPER; Linux 3.4 or newer is needed")
        if spec["timeout_s"] is not None:
            self.deadline = time.monotonic() + spec["timeout_s"]

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the attempt
            os.write(self.log, f"[entry] {text}\n".encode("utf-8", "surrogateescape"))

    def note(self, name: str, value: dict[str, Any]) -> None:
        """Write a record that the attempt can do without."""
        try:
            record(self.folder, name, value)
        except OSError as error:
            self.say(f"cannot write {name}.json: {error.strerror}")

    def watch(self, want: dict[str, Any]) -> None:
        """Look for READY in a thread, so that a slow answer delays nothing."""

        from .ready import watch_port

        def look_for_it() -> None:
            verdict = watch_port(want, descendants)
            if verdict[0] == "ready" and not self.intent:
                self.note("ready", {"port": want["port"], "time": time.time()})
            self.verdict = verdict
            os.write(self.wake_w, b"\0")

        threading.Thread(target=look_for_it, daemon=True).start()

    def run(self, name: str, argv: list[str], env: dict[str, Any], out: int | None = None) -> dict[str, Any]:
        """Run one command and give its record when its tree is empty."""
        self.say(name if out else f"{name}: {' '.join(shlex.quote(a) for a in argv)}")
        where, env = os.fstat(self.log).st_size, changed(env, {"ASCEND_RUNNER_ATTEMPT": self.spec["id"]})
        done: dict[str, Any] = {
            "name": name,
            "code": None,
            "signal": None,
            "started": time.time(),
            "ended": None,
        }
        self.commands += [] if out else [done]
        self.term_at, self.kill_at, self.kills = NEVER, NEVER, 0
        self.termed.clear()
        self.statuses.clear()
        try:
            pid = self.main = spawn(argv, self.spec["cwd"], env, self.log, out or self.log)
        except EntryError as error:
            done.update(code=error.code, ended=time.time())
            raise
        while self.reap():
            if self.main and pid in self.statuses:
                self.main, done["ended"] = 0, time.time()
                self.main_ended(name, self.statuses[pid])
            self.look_around()
            self.act("LOCAL_RANK" not in env)
            self.sleep()
        done["ended"], self.main = done["ended"] or time.time(), 0
        done["code"], done["signal"] = read_status(self.statuses[pid], argv[0])
        self.ranks = torchrun_codes(self.log, where) if done["code"] else {}
        return done

    def reap(self) -> bool:
        """Collect who has ended; False when none is left (orphans come to us: no child, no descendant)."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                self.statuses[pid] = status
        except ChildProcessError:
            return False

    def main_ended(self, name: str, status: int) -> None:
        """Give what is left behind a moment; a trainer whose wrapper was killed, its full grace."""
        if self.intent:
            self.term_at = min(self.term_at, time.monotonic())
            return
        killed = self.spec["stop"] == "ranks" and os.WIFSIGNALED(status)
        self.grace = self.spec["grace_s"] if killed else LEFTOVER_GRACE_S
        self.term_at = time.monotonic() + self.spec["linger_s"]
        self.say(f"{name}: has ended, but left behind {show(descendants())}")

    def look_around(self) -> bool:
        """Notice a wish to stop, a timeout or a lost port; True when the attempt has to end."""
        now, intent = time.monotonic(), self.intent
        verdict, self.verdict = self.verdict, None
        if verdict and verdict[0] == "ready":
            self.say(verdict[1])
        elif verdict:
            intent = intent or verdict
        if now >= self.deadline:
            intent = intent or ("timeout", f"ran longer than {self.spec['timeout_s']:g} s")
        if self.asked:
            intent = intent or ("user", f"stopped by {sign(self.asked[0])}")
        if intent and not self.intent:
            self.intent = intent
            self.begin_to_stop(now)
        if len(self.asked) > 1 and not self.hurried:
            self.say(f"{sign(self.asked[1])} again: no more grace")
            self.hurried, self.kill_at = True, now
        return self.intent is not None

    def begin_to_stop(self, now: float) -> None:
        """From here on there is only the grace; whoever comes back later reads that it has begun."""
        assert self.intent
        reason, message = self.intent
        self.deadline, self.grace = NEVER, self.spec["grace_s"]
        self.term_at, self.kill_at, self.kills = now, NEVER, 0
        if reason in ("user", "timeout"):
            self.stop = {"by": "signal" if reason == "user" else "timeout", "at": time.time(), "killed": []}
        self.say(f"stop: {message}; grace {self.grace:g} s")
        self.note(
            "stopping", {"reason": reason, "message": message, "grace_s": self.grace, "time": time.time()}
        )

    def act(self, seek_ranks: bool) -> None:
        """Send what is due: TERM to those who can save their work, KILL to all after the grace."""
        now = time.monotonic()
        if self.kill_at <= now:
            tree = descendants()
            if self.kills in (0, 20):
                self.say(
                    f"{'KILL after the grace' if not self.kills else 'KILL has not ended'}: {show(tree)}"
                )
            if self.stop:
                self.stop["killed"] += [p for p in tree if p not in self.stop["killed"]]
            send(signal.SIGKILL, tree)
            self.kill_at, self.kills = now + min(0.05 * 1.5**self.kills, 1.0), min(self.kills + 1, 99)
        elif self.term_at <= now:
            tree = descendants()
            if not any(p in tree and tree[p].start == s for p, s in self.termed.items()):
                chosen = tree if self.spec["stop"] == "tree" else trainers(tree, self.main, seek_ranks)
                self.say(f"TERM to {show(chosen)}")
                self.termed.update({p: tree[p].start for p in chosen})
                send(signal.SIGTERM, chosen)
            self.term_at, self.kill_at = now + AGAIN_S, min(self.kill_at, now + self.grace)

    def sleep(self) -> None:
        """Wait for a signal, the watch, or the next thing that is due."""
        left = min(self.deadline, self.term_at, self.kill_at) - time.monotonic()
        select.select([self.wake_r], [], [], None if left == NEVER else min(max(left, 0.0), 86400.0))
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake_r, 4096):
                pass


def spawn(argv: list[str], cwd: str, env: dict[str, str], log: int, out: int) -> int:
    """Start a command in a session of its own; its lines go to the log without passing through us."""
    try:
        process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
        )
    except FileNotFoundError:
        raise EntryError(f"{argv[0]}: not found (or its interpreter, or cwd {cwd} is gone)", 127) from None
    except (OSError, ValueError) as error:
        raise EntryError(f"{argv[0]}: cannot be executed: {error}", 126) from None
    process.returncode = 0  # reaping is ours
    return process.pid
