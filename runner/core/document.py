"""A document that remembers where everything in it was written, and the findings that point into it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from runner.core.wording import printable
from runner.errors import Finding, Severity

Path = tuple[str | int, ...]

MAX_COLUMNS = 100  # wider source lines are cut around the caret
_NAME = re.compile(r"[^\W\d][\w-]*")


class Spot(NamedTuple):
    """A stretch on one source line; line and col count from 1, col and width in characters."""

    line: int
    col: int
    width: int


class Node(NamedTuple):
    """One value with its place; `below` holds (key place, node) by key, or the nodes of a list."""

    spot: Spot
    end_line: int
    value: object
    below: Mapping[str, tuple[Spot, Node]] | Sequence[Node] | None
    nodes: int  # how many nodes it stands for, aliases expanded
    chars: int
    height: int


@dataclass(frozen=True)
class Document:
    """A file as values, each with the place where it was written."""

    file: str
    text: str = field(repr=False)
    value: dict[str, object]
    root: Node = field(repr=False, compare=False)
    lines: tuple[str, ...] = field(repr=False, compare=False)

    def place(self, path: Path, key: bool = False) -> Spot:
        """Where the value (or its key) stands; the nearest ancestor's place when the path is unknown."""
        spot, node, found = self._find(path)
        if spot is not None and (node.spot.width == 0 or (key and found)):
            return spot
        return node.spot._replace(width=max(node.spot.width, 1))

    def place_of(self, path: Path, text: str) -> Spot:
        """Where this text stands inside a scalar; the scalar's place when it is not found as written."""
        _, node, found = self._find(path)
        if found and text and "\n" not in text:
            for number in range(node.spot.line, min(node.end_line, len(self.lines)) + 1):
                start = node.spot.col - 1 if number == node.spot.line else 0
                at = self.lines[number - 1].find(text, start)
                if at >= 0:
                    return Spot(number, at + 1, len(text))
        return self.place(path)

    def _find(self, path: Path) -> tuple[Spot | None, Node, bool]:
        spot, node = None, self.root
        for part in path:
            if isinstance(node.below, Mapping) and isinstance(part, str) and part in node.below:
                spot, node = node.below[part]
            elif isinstance(node.below, Sequence) and isinstance(part, int) and 0 <= part < len(node.below):
                spot, node = None, node.below[part]
            else:
                return spot, node, False
        return spot, node, True


def finding(
    doc: Document,
    path: Path,
    code: str,
    message: str,
    *,
    hint: str | None = None,
    severity: Severity = "error",
    key: bool = False,
    at: str = "",
) -> Finding:
    """A finding about the value (or its key, or the text `at` inside it) at this path of the document."""
    spot = doc.place_of(path, at) if at else doc.place(path, key)
    return spot_finding(
        doc.file, doc.lines, spot, code, message, hint=hint, severity=severity, path=path_text(path)
    )


def spot_finding(
    file: str,
    lines: Sequence[str],
    spot: Spot,
    code: str,
    message: str,
    *,
    hint: str | None = None,
    severity: Severity = "error",
    path: str = "",
) -> Finding:
    """A finding about a place in a text that need not be a document (yet)."""
    # whatever a message quotes, a terminal must not act on it
    said, advice = printable(message), None if hint is None else printable(hint)
    return Finding(code, said, severity, advice, file, spot.line, spot.col, path, excerpt(lines, spot))


def path_text(path: Path) -> str:
    """A path as people write it: steps[1].args.lora_rank."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _NAME.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += '["{}"]'.format(printable(part[:60]).replace('"', '\\"'))
    return text


def format_finding(found: Finding) -> str:
    """A finding as it is printed: file:line:col, message, source lines with a caret, hint."""
    place = ":".join(str(p) for p in (found.file, found.line, found.col) if p)
    label = "" if found.severity == "error" else f"{found.severity}: "
    head = f"{place}: {label}{found.message}" if place else f"{label}{found.message}"
    hint = f"  hint: {found.hint}" if found.hint else ""
    return "\n".join(part for part in (head, found.excerpt, hint) if part)


def finding_json(found: Finding) -> dict[str, object]:
    """A finding for machines."""
    return {
        "file": found.file,
        "line": found.line,
        "col": found.col,
        "path": found.path,
        "code": found.code,
        "severity": found.severity,
        "message": found.message,
        "hint": found.hint,
    }


def excerpt(lines: Sequence[str], spot: Spot) -> str:
    """The line of the place, the one before it, and a caret under the place."""
    if not 1 <= spot.line <= len(lines):
        return ""
    text = lines[spot.line - 1]
    col = min(spot.col, len(text) + 1)
    fits = columns(text[: col - 1 + spot.width]) <= MAX_COLUMNS - 10
    start = 0 if fits else max(0, col - 1 - MAX_COLUMNS // 2)
    before = spot.line > 1 and not start and bool(lines[spot.line - 2].strip())
    numbers = [spot.line - 1, spot.line] if before else [spot.line]
    digits = max(len(str(spot.line)), 1)
    rows = [f"  {n:>{digits}} | {_window(lines[n - 1], start)}".rstrip() for n in numbers]
    lead = ("..." if start else "") + _on_screen(text[start : col - 1])
    under = _on_screen(text[col - 1 : col - 1 + max(spot.width, 1)])
    width = max(1, min(columns(under), MAX_COLUMNS - columns(lead)))
    rows.append(f"  {'':>{digits}} | {' ' * columns(lead)}{'^' * width}")
    return "\n".join(rows)


def columns(text: str) -> int:
    """How many terminal columns a text takes; East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(_width(c) for c in text)


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _window(line: str, start: int) -> str:
    text, room = "...", MAX_COLUMNS
    if start == 0:
        text = ""
    for count, char in enumerate(_on_screen(line[start : start + MAX_COLUMNS + 1])):
        room -= _width(char)
        if room < 0 or count >= MAX_COLUMNS:
            return text + "..."
        text += char
    return text


def _on_screen(text: str) -> str:
    if text.isprintable():
        return text
    # one character for one character, so that the caret stays under its place
    return "".join(c if c.isprintable() else " " if c in "\t\u3000\xa0" else "?" for c in text)
