"""A growing text file in whole lines; of a progress bar only the last state of its line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20
_LONGEST = 8 << 20  # a line without an end is given in pieces


class Tail:
    """Reads a file as it grows; it stays with the file that it opened, whatever takes its name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def skip_to_last(self, count: int) -> int:
        """Go to where the last lines begin, read from the end; how many there are, at most `count`."""
        file = self._opened()
        if file is None:
            return 0
        at = end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        unfinished = end > 0 and file.read(1) != b"\n"
        left = max(1, count + (not unfinished))  # newlines to find: the one before the first of these lines
        lines = 0
        while at > 0:
            size = min(at, _CHUNK)
            at = file.seek(at - size)
            data = _read(file, size)
            found = data.count(b"\n")
            if found >= left:
                place = len(data)
                for _ in range(left):
                    place = data.rfind(b"\n", 0, place)
                file.seek(at + place + 1)
                return count
            left, lines = left - found, lines + found
        file.seek(0)
        return lines + unfinished

    def blocks(self, *, final: bool) -> Iterator[bytes]:
        """What came since the last call, in blocks of whole lines; with `final` the unfinished line too.

        Only a piece of a very long line ends without a newline.
        """
        file = self._opened()
        if file is None:
            return
        left = os.fstat(file.fileno()).st_size - file.tell()  # what comes meanwhile has its turn next time
        while left > 0 and (chunk := file.read(min(left, _CHUNK))):
            left -= len(chunk)
            block, self._rest = _whole_lines(self._rest + chunk)
            if block:
                yield block
        if self._rest and final:
            rest, self._rest = self._rest, b""
            yield _shown(rest) + b"\n"

    def lines(self) -> Iterator[str]:
        """The whole lines since the last call, as text."""
        for block in self.blocks(final=False):
            yield from block.decode("utf-8", "replace").removesuffix("\n").split("\n")

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _opened(self) -> BinaryIO | None:
        if self._file is None:
            try:
                self._file = self._path.open("rb", buffering=0)
            except OSError:
                return None
        return self._file


def last_lines(path: Path, count: int, most_bytes: int = 64 << 10) -> list[str]:
    """The last lines of a file as far as they fit into so many bytes; [] when it cannot be read."""
    try:
        with path.open("rb") as f:
            start = max(0, f.seek(0, os.SEEK_END) - most_bytes)
            f.seek(start)
            data = f.read(most_bytes)
    except OSError:
        return []
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    if start and len(lines) <= count:
        lines[0] = b"..." + lines[0]
    chosen = lines[-count:] if count else []
    return [_shown(line).rstrip(b"\r").decode("utf-8", "replace") for line in chosen]


def _read(file: BinaryIO, size: int) -> bytes:
    """Exactly so many bytes where they are there; one call may give fewer."""
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def _whole_lines(data: bytes) -> tuple[bytes, bytes]:
    """The whole lines, and what is left; of an endless line its last state or a piece."""
    end = data.rfind(b"\n") + 1
    block, rest = data[:end], data[end:]
    if block.count(b"\r") != block.count(b"\r\n"):
        block = b"\n".join(map(_shown, block.split(b"\n")))
    if b"\r" in rest:
        rest = rest[rest.rstrip(b"\r").rfind(b"\r") + 1 :]
    return (block + rest, b"") if len(rest) > _LONGEST else (block, rest)


def _shown(line: bytes) -> bytes:
    """The last state of a line; the \\r of a \\r\\n stays."""
    end = b"\r" if line.endswith(b"\r") else b""
    return line.rstrip(b"\r").rpartition(b"\r")[2] + end
