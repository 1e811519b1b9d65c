"""The SQLite file of a home: opened, brought up to date, and all its errors in words."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.errors import UnreachableError

_SCHEMA = sorted(Path(__file__).with_name("schema").glob("*.sql"))
VERSION = len(_SCHEMA)
_SHARED = re.compile(r"nfs|cifs|smb|afs|lustre|gpfs|ceph|beegfs|fuse\.(sshfs|glusterfs|juicefs|s3fs)")


class Database:
    """One connection; every method raises UnreachableError when the file cannot be used."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "state.db"
        self.open()

    def open(self) -> None:
        """Open the file, and bring it to the version of this program."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            refuse_shared(self.home.resolve(), Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
            self._db = sqlite3.connect(self.file, timeout=30, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._upgrade()
        except OSError as e:
            hint = "set RUNNER_HOME to a local folder that you may write to"
            raise UnreachableError(f"cannot use the state folder {self.home}: {e.strerror}", hint=hint) from e
        except sqlite3.Error as e:
            raise self._unusable(e, "use") from e

    def close(self) -> None:
        """Let go of the file; needed before a fork, SQLite's locks do not survive one."""
        self._db.close()

    def rows(self, query: str, key: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """All rows of a query."""
        try:
            return self._db.execute(query, key).fetchall()
        except sqlite3.Error as e:
            raise self._unusable(e, "read") from e

    def row(self, query: str, key: Sequence[Any] = ()) -> sqlite3.Row | None:
        """The first row of a query."""
        return next(iter(self.rows(query, key)), None)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, and nobody else writes meanwhile."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield self._db
            self._db.execute("COMMIT")
        except sqlite3.Error as e:
            raise self._unusable(e, "write") from e
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _upgrade(self) -> None:
        version = self._version()
        if version > VERSION:
            message = f"{self.file} was written by a newer runner (state version {version})"
            raise UnreachableError(message, hint="upgrade the runner")
        if version == VERSION:
            return
        with self.transaction() as db:
            for script in _SCHEMA[self._version() :]:  # another process may have been quicker
                for statement in script.read_text(encoding="utf-8").split(";\n"):
                    db.execute(statement)

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _unusable(self, error: sqlite3.Error, verb: str) -> UnreachableError:
        broken = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        hint = "free disk space, or set RUNNER_HOME to a local folder that you may write to"
        if broken:
            hint = "`runner recover` makes it anew from the run folders"
        return UnreachableError(f"cannot {verb} {self.file}: {error}", hint=hint)


def refuse_shared(home: Path, mounts: str) -> None:
    """UnreachableError when the folder lies on a network file system, by the text of /proc/self/mountinfo.

    SQLite's locks and WAL do not hold there (sqlite.org/wal.html, sqlite.org/faq.html question 5).
    """
    found = ("", "")
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = (
            left.split(" ")[4].encode().decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
        )
        if home.is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, right.split(" ")[0])
    if _SHARED.match(found[1]):
        raise UnreachableError(
            f"the state folder {home} lies on {found[1]}, a network file system that SQLite cannot lock",
            hint="set RUNNER_HOME to a folder on a local disk",
        )
