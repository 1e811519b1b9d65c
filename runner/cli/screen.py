"""Where a followed run is printed: whole blocks of bytes, and on a terminal live lines below them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import BinaryIO


class Screen:
    """Writes to stdout, or to stderr where stdout is for data."""

    def __init__(self, *, to_stderr: bool = False) -> None:
        text = sys.stderr if to_stderr else sys.stdout
        text.flush()
        self._out: BinaryIO = text.buffer
        self._encoding = text.encoding
        self._live: list[str] = []
        self._drawn = 0  # live lines that stand on the terminal
        self._within = False  # a line of ours would begin within another
        self.is_terminal = text.isatty() and os.environ.get("TERM") != "dumb"

    def write(self, block: bytes) -> None:
        """Print lines as they are."""
        self._erase()
        self._out.write(block)
        self._within = not block.endswith(b"\n")
        self._draw()

    def say(self, line: str) -> None:
        """Print one line of ours."""
        start = b"\n" if self._within else b""
        self.write(start + line.encode(self._encoding, "replace") + b"\n")

    def live(self, lines: Sequence[str]) -> None:
        """Put these below all that was printed, in place of what was there; nothing where nobody looks."""
        if self.is_terminal and list(lines) != self._live:
            self._erase()
            self._live = list(lines)
            self._draw()

    def done(self) -> None:
        """Take the live lines away."""
        self.live(())
        self._out.flush()

    def goes_to(self) -> int:
        """The file descriptor behind it."""
        return self._out.fileno()

    def _erase(self) -> None:
        if self._drawn:
            self._out.write(b"\r\x1b[2K" + b"\x1b[1A\x1b[2K" * (self._drawn - 1))
        self._drawn = 0

    def _draw(self) -> None:
        if self._live and not self._within:
            from rich.cells import set_cell_size

            size = shutil.get_terminal_size()
            shown = self._live[: max(1, size.lines - 1)]
            width = max(10, size.columns - 1)
            lines = [set_cell_size(line, width).rstrip() for line in shown]
            self._out.write("\n".join(lines).encode(self._encoding, "replace"))
            self._drawn = len(lines)
        self._out.flush()
