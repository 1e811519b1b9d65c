"""The story of a run: one JSON line for each thing that happened to it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Story:
    """The file events.jsonl of one run; followers wake up on it, and `runner recover` reads it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tell(self, **event: object) -> None:
        """Add a line; on a full disk it is missing, which harms nobody but who follows."""
        line = json.dumps({"time": round(time.time(), 3), **event}, ensure_ascii=False) + "\n"
        with contextlib.suppress(OSError), self._path.open("ab+") as f:
            torn = f.tell() and os.pread(f.fileno(), 1, f.tell() - 1) != b"\n"
            f.write(b"\n" * bool(torn) + line.encode())

    def events(self) -> Iterator[dict[str, Any]]:
        """All lines in order; one that was torn by a power loss is left out."""
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        yield from filter(None, map(read_event, text.split("\n")))


def read_event(line: str) -> dict[str, Any] | None:
    """One line of a story; None when it is torn."""
    with contextlib.suppress(ValueError, RecursionError):
        event = json.loads(line)
        if isinstance(event, dict):
            return event
    return None
