"""A growing text file in whole lines; of a progress bar only the last state of its line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20
_LONGEST = 8 << 20  # a line without an end is given in pieces


class Tail:
    """Reads a file as it grows; it stays with the file that it opened, whatever takes its name."""

    def __init__(self, path: Path, *, at_end: bool = False) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        if at_end and self._opened():
            assert self._file is not None
            self._file.seek(0, 2)

    def blocks(self, *, final: bool) -> Iterator[bytes]:
        """What came since the last call, in blocks of whole lines; with `final` the unfinished line too."""
        if not self._opened():
            return
        assert self._file is not None
        while chunk := self._file.read(_CHUNK):
            block, self._rest = _whole_lines(self._rest + chunk)
            if block:
                yield block
        if self._rest and final:
            rest, self._rest = self._rest, b""
            yield _shown(rest) + b"\n"

    def lines(self) -> Iterator[str]:
        """The whole lines since the last call, as text."""
        for block in self.blocks(final=False):
            yield from block.decode("utf-8", "replace").splitlines()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _opened(self) -> bool:
        if self._file is None:
            try:
                self._file = self._path.open("rb", buffering=0)
            except OSError:
                return False
        return True


def last_lines(path: Path, count: int, most_bytes: int = 64 << 10) -> list[str]:
    """The last lines of a file, read from its end; [] when it cannot be read."""
    if count == 0:
        return []
    data = b""
    try:
        with path.open("rb") as f:
            at = f.seek(0, 2)
            while at and data.count(b"\n") <= count and (len(data) < most_bytes or count > 1000):
                size = min(at, _CHUNK if count > 1000 else 64 << 10)
                at = f.seek(at - size)
                data = f.read(size) + data
    except OSError:
        return []
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    return [_shown(line).decode("utf-8", "replace") for line in lines[-count:]]


def _whole_lines(data: bytes) -> tuple[bytes, bytes]:
    """The whole lines, and what is left; of an endless line its last state or a piece."""
    end = data.rfind(b"\n") + 1
    block, rest = data[:end], data[end:]
    if b"\r" in block:
        block = b"\n".join(_shown(line) for line in block[:-1].split(b"\n")) + b"\n"
    if len(rest) > _LONGEST:
        last = rest.rfind(b"\r", 0, -1)
        block, rest = (block, rest[last + 1 :]) if last >= 0 else (block + rest, b"")
    return block, rest


def _shown(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2]
