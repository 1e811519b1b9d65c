"""A reward for GRPO, given to ms-swift with `--external_plugins reward.py --reward_funcs tiny_overlap`."""
# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

from typing import Any

from swift.rewards import ORM, orms


class TinyOverlap(ORM):
    """How much of the data set's `solution` an answer holds: from 0 (nothing) to 1 (the same characters)."""

    def __call__(self, completions: list[str], solution: list[str], **kwargs: Any) -> list[float]:
        """Give one reward for each completion."""
        return [overlap(answer, wanted) for answer, wanted in zip(completions, solution, strict=True)]


def overlap(answer: str, wanted: str) -> float:
    """Compare two texts by their pairs of neighbouring characters (the Dice coefficient)."""
    left, right = pairs(answer), pairs(wanted)
    return 2 * len(left & right) / (len(left) + len(right)) if left and right else 0.0


def pairs(text: str) -> set[str]:
    return {text[i : i + 2] for i in range(len(text) - 1)}


orms["tiny_overlap"] = TinyOverlap
