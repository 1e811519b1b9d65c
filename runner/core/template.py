"""Templates: text in which `${{ params.model }}` stands for a value, and `$${{` for itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runner.core.document import Path
from runner.core.wording import shown

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

_OPEN = re.compile(r"\$?\$\{\{")
_DOTTED = re.compile(rf"{NAME.pattern}(\.{NAME.pattern})*")


@dataclass(frozen=True)
class Ref:
    """A name inside `${{ }}`; as text it is the expression itself."""

    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.path)

    def __str__(self) -> str:
        return f"${{{{ {self.name} }}}}"


@dataclass(frozen=True)
class Broken:
    """Something that begins like an expression and is none."""

    text: str
    message: str


Part = str | Ref | Broken


def parse_template(text: str) -> list[Part]:
    """The text as plain pieces (with `$${{` still escaped) and expressions, in order."""
    if "${{" not in text:
        return [text] if text else []
    parts: list[Part] = []
    done = 0
    while opened := _OPEN.search(text, done):
        before = text[done : opened.start()]
        if opened.group().startswith("$$"):
            _append(parts, before + opened.group())
            done = opened.end()
            continue
        _append(parts, before)
        part, done = _expression(text, opened)
        parts.append(part)
    _append(parts, text[done:])
    return parts


def refs(value: object, path: Path = ()) -> list[tuple[Ref, Path]]:
    """Every expression in the value with its path, in document order."""
    match value:
        case str():
            return [(p, path) for p in parse_template(value) if isinstance(p, Ref)]
        case Mapping():
            return [found for k, v in value.items() for found in refs(v, (*path, k))]
        case list() | tuple():
            return [found for i, v in enumerate(value) for found in refs(v, (*path, i))]
        case _:
            return []


def as_text(value: object) -> str | None:
    """How a value stands inside text; None for a list, a mapping or null, which cannot."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return str(value)
        case _:
            return None


def joined_parts(pieces: list[str]) -> list[Part]:
    """The parts that the pieces have one by one, with plain neighbours made one."""
    parts: list[Part] = []
    for piece in pieces:
        for part in parse_template(piece):
            if isinstance(part, str):
                _append(parts, part)
            else:
                parts.append(part)
    return parts


def _append(parts: list[Part], text: str) -> None:
    if not text:
        return
    if parts and isinstance(parts[-1], str):
        parts[-1] += text
    else:
        parts.append(text)


def _expression(text: str, opened: re.Match[str]) -> tuple[Ref | Broken, int]:
    start = opened.start()
    following = text.find("${{", opened.end())
    stop = following if following >= 0 else len(text)
    end = text.find("}}", opened.end(), stop)
    if end < 0:
        return Broken(text[start:stop].partition("\n")[0].rstrip(), "'${{' is not closed with '}}'"), stop
    body = text[opened.end() : end].strip()
    written = text[start : end + 2]
    if _DOTTED.fullmatch(body):
        return Ref(tuple(body.split("."))), end + 2
    if not body:
        return Broken(written, "'${{ }}' names nothing; write a name such as ${{ params.model }}"), end + 2
    message = f"{shown(body)} is no name; only names joined by dots can stand in ${{{{ }}}}"
    return Broken(written, message), end + 2
