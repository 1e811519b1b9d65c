"""How much of a disk a folder takes."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from runner.core.sizes import size_text

__all__ = ["disk_use", "size_text"]


def disk_use(path: Path) -> int:
    """Allocated bytes below a path: links are not followed, a file with several names counts once."""
    total = 0
    seen: set[tuple[int, int]] = set()
    waiting = [os.fspath(path)]
    while waiting:
        here = waiting.pop()
        with contextlib.suppress(OSError):  # it has gone meanwhile, or may not be read
            facts = os.lstat(here)
            if (facts.st_dev, facts.st_ino) not in seen:
                total += facts.st_blocks * 512
            if facts.st_nlink > 1:
                seen.add((facts.st_dev, facts.st_ino))
            if stat.S_ISDIR(facts.st_mode):
                with os.scandir(here) as entries:
                    waiting += [e.path for e in entries]
    return total
