"""Where a followed run is printed: whole blocks of bytes, and on a terminal a live line below them."""

from __future__ import annotations

import os
import shutil
import sys
from typing import BinaryIO


class Screen:
    """Writes to stdout, or to stderr where stdout is for data."""

    def __init__(self, *, to_stderr: bool = False) -> None:
        self._text = sys.stderr if to_stderr else sys.stdout
        self._out: BinaryIO = self._text.buffer
        self._live = ""
        self.is_terminal = self._text.isatty() and os.environ.get("TERM") != "dumb"

    def write(self, block: bytes) -> None:
        """Print whole lines."""
        self._text.flush()
        self._erase()
        self._out.write(block)
        self._draw()

    def say(self, line: str) -> None:
        """Print one line of ours."""
        self.write(line.encode("utf-8", "replace") + b"\n")

    def live(self, line: str) -> None:
        """Put this below all that was printed, in place of what was there; nothing where nobody looks."""
        if self.is_terminal and line != self._live:
            self._erase()
            self._live = line
            self._draw()

    def done(self) -> None:
        """Take the live line away."""
        self.live("")
        self._out.flush()

    def _erase(self) -> None:
        if self._live:
            self._out.write(b"\r\x1b[2K")

    def _draw(self) -> None:
        if self._live:
            from rich.cells import set_cell_size

            width = max(10, shutil.get_terminal_size().columns - 1)
            self._out.write(set_cell_size(self._live, width).rstrip().encode("utf-8", "replace"))
        self._out.flush()
