"""Files as a manifest names them: size, time and sha256; large ones are read once and remembered."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.errors import UnreachableError
from runner.files import read_json, write_atomic

Entry = dict[str, Any]
_REMEMBERED = 1 << 20  # a smaller file is read again
_MOST = 20_000
_CHUNK = 1 << 20
_JUST_WRITTEN_S = 2.0  # a file may still change without another mtime
_ODD = {
    stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


def entries(at: Path, limit: int, *, follow: bool) -> list[Entry]:
    """A file, or all files below a folder in order, as they are now; `path` is relative, `.` the file itself.

    Never raises: what cannot be looked at has an `error`. Links are followed to files, and with `follow` also
    from `at` itself to a folder; links to folders below it are named and left alone.
    """
    try:
        facts = at.stat() if follow else at.lstat()
    except (OSError, ValueError) as e:  # ValueError: a name that no file can have
        return [{"path": ".", "error": _why(e)}]
    if not stat.S_ISDIR(facts.st_mode):
        return [entry(at, ".", follow=follow)]
    found: list[Entry] = []
    for name in _below(os.fspath(at)):
        if len(found) >= limit:
            return [*found, {"path": "...", "error": f"more than {limit} files; the others are not named"}]
        found.append(entry(at / name, name, follow=follow))
    return found


def entry(path: Path, name: str, *, follow: bool) -> Entry:
    """One file as it is now, without its hash."""
    try:
        facts = path.lstat()
        if stat.S_ISLNK(facts.st_mode):
            target = str(path.readlink())
            if not follow or path.is_dir():
                return {"path": name, "link": target}
            facts = path.stat()
    except OSError as e:
        return {"path": name, "error": _why(e)}
    if not stat.S_ISREG(facts.st_mode):
        return {"path": name, "error": f"is {_ODD.get(stat.S_IFMT(facts.st_mode), 'no file')}"}
    return {"path": name, **_identity(facts)}


def same(before: Entry, now: Entry) -> bool:
    """Whether a file is still the one it was, as far as that can be told without reading it."""
    keys = ("size", "mtime", "inode", "link", "error")
    return [before.get(k) for k in keys] == [now.get(k) for k in keys]


class Hashes:
    """The sha256 of files, remembered in a file by path, size, time of change and inode."""

    def __init__(self, file: Path) -> None:
        self._file = file
        known = read_json(file) or {}
        files, environments = known.get("files"), known.get("environments")
        self._known: dict[str, Any] = files if isinstance(files, dict) else {}
        self.environments: dict[str, Any] = environments if isinstance(environments, dict) else {}

    def save(self) -> None:
        """Write down what is known; on a full disk it is only slower the next time."""
        kept = dict(list(self._known.items())[-_MOST:])
        try:
            text = json.dumps({"files": kept, "environments": self.environments})
            write_atomic(self._file, text + "\n", durable=False)
        except UnreachableError:
            return

    def hashed(self, path: Path, entry: Entry) -> Entry:
        """The entry of a file with its `sha256`, or with the reason why it has none."""
        if "size" not in entry:
            return entry
        real = Path(os.path.realpath(path))  # one large file may be linked into many runs
        try:
            facts = real.stat()
            key, mark = os.fspath(real), [facts.st_size, facts.st_mtime_ns, facts.st_ino]
            known = self._known.pop(key, None)
            if isinstance(known, list) and known[:3] == mark and len(known) == 4:
                self._known[key] = known
                return {**entry, "sha256": known[3]}
            digest, facts = _digest(real)
        except OSError as e:
            return {**entry, "error": _why(e)}
        if not same(entry, _identity(facts)):
            return {**entry, "error": "changed while it was read"}
        if entry["size"] >= _REMEMBERED and time.time() - facts.st_mtime > _JUST_WRITTEN_S:
            self._known[key] = [*mark, digest]
        return {**entry, "sha256": digest}


def _below(folder: str) -> Iterator[str]:
    """The paths of all files below a folder, relative and in order; links to folders are files here."""
    waiting = [""]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, here)) as inside:  # noqa: PTH118 - thousands of them
                found = sorted((e.name, e.is_dir(follow_symlinks=False)) for e in inside)
        except OSError:
            yield here or "."
            continue
        front = f"{here}/" if here else ""
        waiting += [front + name for name, is_folder in reversed(found) if is_folder]
        yield from (front + name for name, is_folder in found if not is_folder)


def _digest(path: Path) -> tuple[str, os.stat_result]:
    """Read without waiting for a writer, should a FIFO have taken the file's place."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as f:
        if stat.S_ISREG(os.fstat(f.fileno()).st_mode):
            while chunk := f.read(_CHUNK):
                digest.update(chunk)
        return digest.hexdigest(), os.fstat(f.fileno())


def _identity(facts: os.stat_result) -> Entry:
    return {"size": facts.st_size, "mtime": facts.st_mtime, "inode": facts.st_ino}


def _why(error: OSError | ValueError) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
