"""What the engine needs of a place where attempts run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from runner.core.bind import Environment
from runner.core.plan import Plan


class Backend(Protocol):
    """Starts attempts and tells which still live; it decides nothing."""

    def environment(self, plan: Plan) -> Environment:
        """What every step of this plan gets; HostError when the stack is not there."""
        ...

    def devices(self) -> list[int]:
        """The NPU devices of this host."""
        ...

    def capacity(self) -> tuple[float, int]:
        """CPUs and bytes of memory of this host."""
        ...

    def free_port(self, taken: set[int], wanted: int | None) -> int | None:
        """A TCP port that nobody listens on and that is not taken; None when the wanted one is busy."""
        ...

    def inherited(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What a step inherits of the submitter's environment."""
        ...

    def launch(self, attempt: Path, environ: Mapping[str, str]) -> int:
        """Start `entry` on an attempt's folder and return a pid; it lives on when we die."""
        ...

    def alive(self, attempt: Path) -> bool:
        """Whether the attempt's `entry` is still there."""
        ...

    def watch(self, attempt: Path) -> int | None:
        """A file descriptor that becomes readable when `entry` ends; None when it has ended."""
        ...

    def stop(self, attempt: Path) -> None:
        """Ask `entry` to stop the attempt; it has its own grace."""
        ...

    def inside(
        self, attempt: Path, argv: Sequence[str], environ: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str], str]:
        """The command line, the environment and the folder by which argv runs where the attempt does or did.

        HostError when that place is gone.
        """
        ...

    def end_leftovers(self, attempt: Path, key: str) -> list[int]:
        """Kill what is left of an attempt whose `entry` is gone; the pids."""
        ...
