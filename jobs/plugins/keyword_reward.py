"""A reward of our own for GRPO: how many of the solution's numbers the answer names."""

import re

from swift.rewards import ORM, orms

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Keyword(ORM):
    """Between 0 and 1, for each completion."""

    def __call__(self, completions, solution, **kwargs):
        return [_share(text, wanted) for text, wanted in zip(completions, solution, strict=True)]


def _share(text: str, wanted: str) -> float:
    numbers = set(_NUMBER.findall(wanted))
    return len(numbers & set(_NUMBER.findall(text))) / len(numbers) if numbers else 0.0


orms["keyword"] = Keyword
