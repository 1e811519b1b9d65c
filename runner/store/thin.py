"""Thins the progress bars of a finished log: a day of tqdm is megabytes of one line."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20
_STATES = 11  # of a bar: about one every 10 %
_PERCENT = re.compile(rb"(\d{1,3})%\|")


def thin_log(path: Path) -> bool:
    """Keep of each line that was drawn again and again its last state and about one for each 10 %.

    All other lines stay as they are, byte for byte. True when the log was written anew; on a full disk it is
    left as it is.
    """
    draft = path.with_name(path.name + ".thin")
    try:
        with path.open("rb") as source:
            if not _has_bars(source):
                return False
            source.seek(0)
            with draft.open("wb") as target:
                _copy(source, target)
        if draft.stat().st_size == path.stat().st_size:
            draft.unlink()
            return False
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        return False
    return True


def thin_line(line: bytes) -> bytes:
    """One line without its end, thinned; a bar is two states or more between carriage returns."""
    states = line.split(b"\r")
    tail = [b""] if states[-1] == b"" else []  # \r\n at the end of the line
    states = states[: len(states) - len(tail)]
    if len(states) <= _STATES:
        return line
    kept = [state for i, state in enumerate(states) if i == 0 or _tenth(state) != _tenth(states[i - 1])]
    if len(kept) > _STATES or kept[-1] != states[-1]:
        kept = [*_spread(kept, _STATES - 1), states[-1]]
    return b"\r".join([*kept, *tail])


def _tenth(state: bytes) -> int | None:
    found = _PERCENT.search(state)
    return int(found[1]) // 10 if found else None


def _spread(states: list[bytes], count: int) -> list[bytes]:
    if len(states) <= count:
        return states
    return [states[i * len(states) // count] for i in range(count)]


def _has_bars(source: BinaryIO) -> bool:
    last = b""
    while chunk := source.read(_CHUNK):
        whole = last + chunk
        last = b"\r" if whole.endswith(b"\r") else b""
        if whole.removesuffix(b"\r").count(b"\r") > whole.count(b"\r\n"):
            return True
    return False


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    rest = b""
    while chunk := source.read(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        target.writelines(thin_line(line) + b"\n" for line in lines)
        if len(rest) > 64 * _CHUNK:  # a line as long as this is no bar
            target.write(rest)
            rest = b""
    target.write(thin_line(rest))
