"""The versions of CANN, which follow no standard, read and put in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from runner.core.wording import shown
from runner.errors import UsageError

_STAGE = r"[.-](?:alpha|beta|rc)\.?[0-9]{1,6}"
# Either three numbers, or two and a stage (8.3.rc1); a stage can have one of its own (8.3.rc1.alpha003).
CANN_PATTERN: Final = (
    rf"[0-9]{{1,2}}\.[0-9]{{1,3}}(?:\.[0-9]{{1,3}}(?:{_STAGE}){{0,2}}|(?:{_STAGE}){{1,2}})(?![0-9])"
)
_RANKS: Final = {"alpha": 0, "beta": 1, "rc": 2}
_FINAL: Final = (3, 0)


@dataclass(frozen=True, order=True)
class Cann:
    """A version of CANN; alpha comes before beta, rc and final."""

    base: tuple[int, int, int]
    stages: tuple[tuple[int, int], ...]  # rank and number, closed by the final one
    text: str = field(compare=False)  # lower case

    def __str__(self) -> str:
        """The version as the tags of images write it."""
        return self.text


def parse_cann(text: str) -> Cann:
    """Read a version such as `9.1.0-beta.3`, `8.3.rc1` or `8.2.RC1`."""
    lower = text.lower()
    if not re.fullmatch(CANN_PATTERN, lower):
        raise UsageError(
            f"{shown(text)} is not a version of CANN",
            hint="a version looks like 9.0.0, 9.1.0-beta.3, 8.3.rc1 or 8.5.0.alpha002",
        )
    stages = re.findall(r"(alpha|beta|rc)\.?([0-9]+)", lower)
    numbers = re.split(r"[.-](?=[a-z])", lower, maxsplit=1)[0].split(".")
    major, minor, patch = (int(n) for n in [*numbers, "0"][:3])
    ranked = tuple((_RANKS[word], int(number)) for word, number in stages)
    return Cann((major, minor, patch), (*ranked, _FINAL), lower)
