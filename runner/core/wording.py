"""How messages name things: quoted values, lists of names, and the name a person probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

MAX_SHOWN = 60
MAX_WORD = 64  # longer words are no typing slips, and comparing them costs time
MAX_WORK = 200_000  # pairs of characters looked at for one suggestion


def shown(value: object) -> str:
    """A value as a message quotes it: short, on one line, printable."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            text = value if len(value) <= MAX_SHOWN else value[: MAX_SHOWN - 3] + "..."
            return f"'{printable(text)}'"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case dict():
            return "a mapping" if value else "an empty mapping"
        case int() if abs(value) >= 10**20:
            return "a very large number"
        case _:
            return printable(str(value))[:MAX_SHOWN]


def printable(text: str) -> str:
    """The text with everything a terminal would act on written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def listing(names: Iterable[str], limit: int = 12) -> str:
    """Names for a message: 'a, b, c and 4 more'."""
    some = list(names)
    text = ", ".join(printable(n[:MAX_SHOWN]) for n in some[:limit])
    return text if len(some) <= limit else f"{text} and {len(some) - limit} more"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The tail of a message about an unknown word; empty when nothing known comes close."""
    best = closest(word, known)
    return "" if best is None else f" - did you mean '{printable(best)}'?"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is a typing slip away from this one; None when none comes close."""
    if not word or len(word) > MAX_WORD:
        return None
    candidates = _affordable(word, known)
    allowed = 1 if len(word) <= 3 else 2 if len(word) <= 8 else 3
    near = [(slips(_plain(word), _plain(k), allowed), i, k) for i, k in enumerate(candidates)]
    best = min((n for n in near if n[0] <= allowed and n[0] < len(n[2])), default=None)
    if best is not None:
        return best[2]
    alike = [(_likeness(word, k), -i, k) for i, k in enumerate(candidates)]
    likest = max((a for a in alike if a[0] >= 0.75), default=None)
    return None if likest is None else likest[2]


def slips(one: str, other: str, most: int) -> int:
    """How many insertions, deletions, replacements and swaps part two words; counted up to `most` + 1."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(other, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(last) > most:
            return most + 1
        before, last = last, row
    return last[-1]


def _affordable(word: str, known: Iterable[str]) -> list[str]:
    """The candidates worth comparing, as many as can be compared without a person waiting."""
    chosen: list[str] = []
    room = MAX_WORK
    for name in known:
        if 0 < len(name) <= MAX_WORD and name != word:
            room -= len(name) * len(word)
            if room < 0:
                break
            chosen.append(name)
    return chosen


def _plain(word: str) -> str:
    return word.lower().replace("-", "_")


def _likeness(word: str, known: str) -> float:
    matcher = SequenceMatcher(None, _plain(word), _plain(known))
    return matcher.ratio() if matcher.quick_ratio() >= 0.75 else 0.0
