"""What really happened, as the steps themselves wrote it down."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Try:
    """One try of a step: where in the ledger it starts, ends and was last heard of, and with which code."""

    token: str
    attempt: str  # as the runner calls it: home.run.step.n
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    last: int = 0
    codes: list[int] = field(default_factory=list)
    began: float = 0.0
    ended: float | None = None
    port: str = "none"

    @property
    def n(self) -> int:
        """Which try it is, as the runner counts."""
        return int(self.attempt.rpartition(".")[2])

    @property
    def run(self) -> int:
        """The run it belongs to."""
        return int(self.attempt.split(".")[1])


def read_ledger(path: Path) -> dict[str, list[Try]]:
    """All tries of each token, in the order in which they started."""
    tries: dict[tuple[str, str], Try] = {}
    for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        word, token, second, time, attempt, *more = line.split(" ")
        one = tries.setdefault((token, attempt), Try(token, attempt))
        one.last = at
        if word == "start":
            one.starts.append(at)
            one.began, one.port = float(time), more[0]
        elif word == "end":
            one.ends.append(at)
            one.codes.append(int(second))
            one.ended = float(time)
    found: dict[str, list[Try]] = {}
    for one in tries.values():
        found.setdefault(one.token, []).append(one)
    return found
