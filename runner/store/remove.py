"""Takes runs away, with all that they left on the disk and nothing else.

A mark `runs/.removing-000012` is made first, then the row goes, then the folder moves below the mark and is
deleted. So a run is either whole or not known any more, whenever this is interrupted, and `finish` ends it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.errors import UnreachableError, UsageError
from runner.store.db import Run, Store
from runner.store.manifest import MANIFEST
from runner.store.memory import let_go
from runner.store.usage import disk_use

DAY_S = 86_400.0
_MARK = ".removing-"


@dataclass(frozen=True)
class Stray:
    """A folder that no run owns, or a run that was never wholly written."""

    run: int
    why: str


class InUse:
    """Which runs' files the open runs name, in their plans and manifests; each is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        places = {str(store.home), os.path.realpath(store.home)}
        names = "|".join(re.escape(p.replace("\\", "\\\\").replace('"', '\\"')) for p in places)
        self._named = re.compile(rf"(?:{names})/runs/(\d{{6,}})")
        self._by: dict[int, set[int]] = {}

    def user_of(self, run: int) -> Run | None:
        """An open run that uses files of this one."""
        for other in self._store.open_runs():
            if other.id not in self._by:
                self._by[other.id] = self._named_in(self._store.folder(other.id).path) - {other.id}
            if run in self._by[other.id]:
                return other
        return None

    def _named_in(self, folder: Path) -> set[int]:
        found: set[int] = set()
        for name in ("plan.json", MANIFEST):
            with contextlib.suppress(OSError):
                text = (folder / name).read_text(encoding="utf-8", errors="replace")
                found |= {int(n) for n in self._named.findall(text)}
        return found


def why_not(store: Store, run: Run, used: InUse) -> str | None:
    """Why this run cannot be removed now; None when it can."""
    if run.state == "NEW":
        return f"run {run.id} is being written; `runner gc` removes it when it has been so for a day"
    if run.ended is None:
        return f"run {run.id} has not ended; `runner stop {run.id}` ends it"
    folder = store.folder(run.id).path
    if folder.is_symlink():
        return f"{folder} is a link; remove the link by hand, what it points to stays"
    if folder.exists() and not folder.is_dir():
        return f"{folder} is no folder"
    if below := _mounts(folder):
        return f"something is mounted at {below[0]}; unmount it first"
    if other := used.user_of(run.id):
        return f"run {other.id} ({other.name}), which has not ended, uses files of run {run.id}"
    return None


def remove_run(store: Store, run: Run, used: InUse) -> int:
    """Remove a run that has ended; the bytes that came free. UsageError says why it must stay."""
    with removing(store.home):
        if why := why_not(store, store.run(run.id), used):
            raise UsageError(why)
        return _remove(store, run.id)


def finish(store: Store) -> tuple[int, list[str]]:
    """End what was interrupted; the bytes that came free, and what still cannot be removed."""
    freed, problems = 0, []
    with removing(store.home):
        known = _rows(store)
        for mark in sorted(_runs(store.home).glob(f"{_MARK}*")):
            run = mark.name.removeprefix(_MARK)
            try:
                if run.isdecimal() and int(run) not in known:
                    freed += _remove(store, int(run))
                else:
                    freed += _delete(mark)
            except UnreachableError as e:
                problems.append(e.message)
    return freed, problems


def strays(store: Store, older_s: float) -> list[Stray]:
    """Runs whose submit was killed more than a day ago, and folders whose run is not known.

    Only numbers that this index has given out, and nothing that has a plan: after the loss of state.db
    `runner recover` wants those.
    """
    now = time.time()
    known = _rows(store)
    last = store.row("SELECT seq FROM sqlite_sequence WHERE name = 'runs'")
    given = int(last["seq"]) if last else 0
    found = [
        Stray(r, "its submit was killed") for r, (s, at) in known.items() if s == "NEW" and now - at > DAY_S
    ]
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(_runs(store.home).iterdir()):
            if re.fullmatch(r"\d{6,}", path.name) and int(path.name) not in known and int(path.name) <= given:
                age = now - path.lstat().st_mtime
                usable = path.is_dir() and not path.is_symlink() and not _mounts(path)
                if usable and not (path / "plan.json").exists() and age > max(older_s, DAY_S):
                    found.append(Stray(int(path.name), "no run owns this folder"))
    return found


def remove_stray(store: Store, stray: Stray) -> int:
    """Remove what no run owns; the bytes that came free."""
    with removing(store.home):
        return _remove(store, stray.run)


@contextlib.contextmanager
def removing(home: Path) -> Iterator[None]:
    """One process removes at a time."""
    with (home / "remove.lock").open("w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _remove(store: Store, run: int) -> int:
    folder = store.folder(run).path
    mark = folder.with_name(f"{_MARK}{folder.name}")
    try:
        mark.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise UnreachableError(f"cannot remove run {run}: {mark}: {e.strerror}") from e
    store.drop_run(run)
    let_go(store.home, run)
    return _delete(mark, folder)


def _delete(mark: Path, folder: Path | None = None) -> int:
    """Move a folder below its mark and delete both, by descriptors, so that no link can lead out of it.

    Folders are moved to the top before they are entered: the depth of a tree does not matter.
    """
    try:
        if folder is not None:
            _move_below(folder, mark)
        freed = disk_use(mark)
        top = os.open(mark, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            waiting = _clear(top, top)
            while waiting:
                name = waiting.pop()
                inner = _open_folder(name, top)
                try:
                    waiting += _clear(inner, top)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
        finally:
            os.close(top)
        mark.rmdir()
    except OSError as e:
        message = f"cannot remove all of {mark}: {e.filename}: {e.strerror}"
        raise UnreachableError(message, hint="mend that, and `runner gc` removes the rest") from e
    return freed


def _move_below(folder: Path, mark: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not folder.is_symlink() and folder.is_dir():
            parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.close(_open_folder(folder.name, parent))  # one that is read-only cannot be moved
            finally:
                os.close(parent)
        folder.rename(mark / folder.name)


def _clear(here: int, top: int) -> list[str]:
    """Unlink the files of a folder and move its folders to the top; their names there."""
    moved = []
    with os.scandir(here) as inside:
        found = [(e.name, e.stat(follow_symlinks=False)) for e in inside]
    for name, facts in found:
        if not stat.S_ISDIR(facts.st_mode):
            os.unlink(name, dir_fd=here)
        elif facts.st_dev != os.fstat(top).st_dev:
            raise OSError(errno.EBUSY, "something is mounted there", name)
        elif here == top:
            moved.append(name)
        else:
            os.close(_open_folder(name, here))
            moved.append(f"folder-{facts.st_ino}")
            os.rename(name, moved[-1], src_dir_fd=here, dst_dir_fd=top)
    return moved


def _open_folder(name: str, inside: int) -> int:
    """A folder, made readable and writable first; a link in its place is an error."""
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, os.O_PATH | flags, dir_fd=inside)
    try:
        if stat.S_IMODE(os.fstat(handle).st_mode) & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)  # noqa: PTH101
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as e:
        raise OSError(e.errno, e.strerror, name) from e
    finally:
        os.close(handle)


def _mounts(folder: Path) -> list[str]:
    """The mount points at or below a folder."""
    real = os.path.realpath(folder)
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    points = [line.split(" ")[4].encode().decode("unicode_escape") for line in lines]
    decoded = [p.encode("latin-1", "replace").decode("utf-8", "replace") for p in points]
    return [p for p in decoded if p == real or p.startswith(f"{real}/")]


def _rows(store: Store) -> dict[int, tuple[str, float]]:
    """All runs of the index, those that are still being written too: state and time of submit."""
    return {r["id"]: (r["state"], r["created"]) for r in store.rows("SELECT id, state, created FROM runs")}


def _runs(home: Path) -> Path:
    return home / "runs"
