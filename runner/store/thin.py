"""Thins the progress bars of a finished log: a day of tqdm is megabytes of one line."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20
_STATES = 11  # of a bar, after what its line begins with: about one every 10 %
_MANY = 4096  # states that are looked at together
_LONGEST = 1 << 20  # a state longer than this is none of a bar
_PERCENT = re.compile(rb"(\d{1,3})%\|")


def thin_log(path: Path) -> bool:
    """Keep of each line that was drawn again and again its last state and about one for each 10 %.

    All other lines stay as they are, byte for byte. True when the log was written anew; on a full disk it is
    left as it is.
    """
    draft = path.with_name(path.name + ".thin")
    try:
        with path.open("rb") as source:
            if not _thin(source, None):
                return False
            source.seek(0)
            with draft.open("wb") as target:
                os.fchmod(target.fileno(), stat.S_IMODE(os.fstat(source.fileno()).st_mode))
                _thin(source, target)
                target.flush()
                os.fsync(target.fileno())  # the name must never lead to less than the log
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        return False
    return True


def thin_states(states: Sequence[bytes]) -> list[bytes]:
    """What stays of the states of a line, those after its first carriage return; the last always does."""
    if len(states) <= _STATES:
        return list(states)
    kept = [s for i, s in enumerate(states) if i == 0 or _tenth(s) != _tenth(states[i - 1])]
    if kept[-1] == states[-1] and len(kept) <= _STATES:
        return kept
    fewer = min(len(kept), _STATES - 1)
    return [*(kept[i * len(kept) // fewer] for i in range(fewer)), states[-1]]


def _tenth(state: bytes) -> int | None:
    found = _PERCENT.search(state)
    return int(found[1]) // 10 if found else None


def _is_plain(chunk: bytes) -> bool:
    """Whether every carriage return in it only ends a line."""
    return not chunk.endswith(b"\r") and chunk.count(b"\r") == chunk.count(b"\r\n")


def _thin(source: BinaryIO, target: BinaryIO | None) -> bool:
    """Write the thinned text; True when it is shorter. Without a target only as far as that is known."""
    line = _Line(target.write if target else len)
    while chunk := source.read(_CHUNK):
        line.feed(chunk)
        if target is None and line.thinned:
            return True
    line.end(b"")
    return line.thinned


class _Line:
    """The line that is being read; only states that may have to go are held back."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self.thinned = False
        self._write = write
        self._states: list[bytes] = []  # those after the first carriage return
        self._as_it_is = False

    def feed(self, chunk: bytes) -> None:
        if not self._states and _is_plain(chunk):
            self._write(chunk)
            self._as_it_is &= b"\n" not in chunk
            return
        first, *others = chunk.split(b"\n")
        self._more(first)
        for piece in others:
            self.end(b"\n")
            self._more(piece)

    def end(self, newline: bytes) -> None:
        self._give()
        self._write(newline)
        self._as_it_is = False

    def _more(self, piece: bytes) -> None:
        if self._as_it_is:
            self._write(piece)
            return
        begun, *states = piece.split(b"\r")
        if self._states:
            self._states[-1] += begun
        else:
            self._write(begun)
        for state in states:
            if len(self._states) >= _MANY:
                self._keep(thin_states(self._states))
            self._states.append(state)
        if any(len(s) > _LONGEST for s in self._states[-len(states) - 1 :]):
            self._give()
            self._as_it_is = True

    def _give(self) -> None:
        end = [b""] if self._states and not self._states[-1] else []  # \r\n ends the line
        self._states = self._states[: len(self._states) - len(end)]
        self._keep(thin_states(self._states))
        for state in [*self._states, *end]:
            self._write(b"\r" + state)
        self._states = []

    def _keep(self, states: list[bytes]) -> None:
        self.thinned |= len(states) < len(self._states)
        self._states = states
