"""Why a build failed, when that is known: rules over what the failed step printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runner.core.spec import Model


class BuildRule(Model):
    """One known failure."""

    code: str
    pattern: str
    cause: str
    fix: str
    source: str


class BuildRules(Model):
    """All known failures, the most telling first."""

    rules: list[BuildRule]


def explain(lines: Iterable[str], rules: Sequence[BuildRule]) -> BuildRule | None:
    """The first rule that one of the lines fits."""
    text = "\n".join(lines)
    return next((rule for rule in rules if re.search(rule.pattern, text)), None)
