"""The processes below us, as /proc shows them, and which of them can save their work."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

WRAPPERS = frozenset(
    [
        "sh",
        "bash",
        "dash",
        "ash",
        "zsh",
        "ksh",
        "busybox",
        "env",
        "nohup",
        "timeout",
        "tini",
        "dumb-init",
        "conda",
        "uv",
        "swift",
        "megatron",
        "torchrun",
        "accelerate",
        "deepspeed",
        "torch.distributed.run",
        "torch.distributed.launch",
    ]
)
HELPER = re.compile(r"from multiprocess(ing)?\.\w+ import|resource_tracker|compile_worker")


class Proc(NamedTuple):
    """One process as /proc shows it."""

    ppid: int
    start: int
    threads: int


def look(pid: int) -> Proc:
    """Read one process; a zombie counts as having no threads."""
    rest = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    alive = rest[0] != "Z" or int(rest[17]) > 1  # a dead main thread with living others is no zombie yet
    return Proc(int(rest[1]), int(rest[19]), int(rest[17]) if alive else 0)


def descendants() -> dict[int, Proc]:
    """Give every living process below us, parents before their children."""
    every: dict[int, Proc] = {}
    children: dict[int, list[int]] = {}
    for pid in pids():
        with contextlib.suppress(OSError):
            every[pid] = look(pid)
            children.setdefault(every[pid].ppid, []).append(pid)
    below = [os.getpid()]
    for pid in below:
        below += children.get(pid, [])
    return {pid: every[pid] for pid in below[1:] if every[pid].threads}


def pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def trainers(tree: dict[int, Proc], main_pid: int, seek_ranks: bool) -> list[int]:
    """Choose who can save its work: the ranks, else the programs that the wrappers wait for."""
    ranks = topmost_ranks(tree) if seek_ranks else []
    orphans = [p for p in tree if tree[p].ppid == os.getpid() and not is_helper(words(p))]
    level = list(ranks or ([main_pid] if main_pid in tree else orphans or tree))
    found: list[int] = []
    while level:
        pid = level.pop()
        launches = not ranks and tree[pid].threads == 1
        inner = [p for p in tree if tree[p].ppid == pid and is_wrapped(pid, p, launches)]
        level += inner
        found += [] if inner else [pid]
    return found


def topmost_ranks(tree: dict[int, Proc]) -> list[int]:
    """Find who has LOCAL_RANK and stands below nobody who has it."""
    found: list[int] = []
    below: set[int] = set()
    for pid, proc in tree.items():
        if proc.ppid in below:
            below.add(pid)
        elif b"\0LOCAL_RANK=" in b"\0" + peek(pid, "environ") and not is_helper(words(pid)):
            below.add(pid)
            found.append(pid)
    return found


def is_wrapped(parent: int, pid: int, launches: bool) -> bool:
    """Whether `parent` only waits for `pid`: a known wrapper, or a Python that only launches another."""
    above, own = words(parent), words(pid)
    if own in (above, []) or is_helper(own):
        return False
    return is_wrapper(above) or (launches and (is_wrapper(own) or "python" in Path(own[0]).name))


def is_helper(line: list[str]) -> bool:
    return bool(HELPER.search(" ".join(line)))


def is_wrapper(line: list[str]) -> bool:
    script = (
        [w for w in line[1:] if not w.startswith("-")][:1] if line and "python" in Path(line[0]).name else []
    )
    return any(Path(word).name in WRAPPERS for word in line[:1] + script)


def words(pid: int) -> list[str]:
    return os.fsdecode(peek(pid, "cmdline")).split("\0")[:-1]


def peek(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has ended
        return b""


def show(chosen: Iterable[int]) -> str:
    """Name processes for a log line."""
    every = [f"{pid} ({' '.join(words(pid))[:100]})" for pid in chosen]
    return ", ".join(every[:8]) + (f" and {len(every) - 8} more" if len(every) > 8 else "") or "nothing"


def send(number: int, chosen: Iterable[int]) -> None:
    """Signal all of them; who has gone meanwhile is fine."""
    for pid in chosen:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
