"""Fills in the expressions of a spec: what is known while compiling, and later what only a run can know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from runner.core.document import Document, Path, finding
from runner.core.template import Broken, Part, Ref, as_text, joined_parts, parse_template, refs
from runner.core.wording import did_you_mean, listing, shown
from runner.errors import Finding, RunnerError

__all__ = ["ExpressionError", "Ref", "evaluate", "parse_template", "refs", "resolve", "unknown_name"]

MAX_FILLED = 4_000_000  # characters and values that the expressions of one call may bring in
MAX_FINDINGS = 100

Scope = Mapping[str, Mapping[str, object]]


class ExpressionError(RunnerError):
    """An expression has no value, or none that fits where it stands."""

    code = "expression"


def evaluate(
    doc: Document,
    value: object,
    path: Path,
    scope: Scope,
    late: Callable[[tuple[str, ...]], str | None],
) -> tuple[object, list[Finding]]:
    """The value with every name of the scope filled in; what `late` allows stays as template text.

    `late` answers None for a name that has its value only while running, else what is wrong with it.
    A param that is null stays too: `missing_params` reports it, once for all its uses.
    The result is template text still (`$${{` stays escaped): `resolve` it before use.
    """
    work = _Evaluation(doc, scope, late)
    return work.walk(value, path), work.findings


def resolve(value: object, lookup: Callable[[tuple[str, ...]], object]) -> object:
    """The value with every expression looked up; ExpressionError names the one that has no value."""
    match value:
        case str():
            return _resolve_text(value, lookup)
        case dict():
            return {k: resolve(v, lookup) for k, v in value.items()}
        case list() | tuple():
            return [resolve(v, lookup) for v in value]
        case _:
            return value


def unknown_name(ref: Sequence[str], known: Sequence[str]) -> str:
    """What to say about a name whose last part is none of the known ones at that place."""
    parent = ".".join(ref[:-1])
    options = [f"{parent}.{k}" if parent else k for k in known]
    has = f" ({parent or 'there is'}{' has' if parent else ''}: {listing(known) or 'nothing'})"
    return f"unknown name '{'.'.join(ref)}'{did_you_mean('.'.join(ref), options)}{has}"


@dataclass(frozen=True)
class _Wrong:
    message: str


@dataclass
class _Evaluation:
    doc: Document
    scope: Scope
    late: Callable[[tuple[str, ...]], str | None]
    findings: list[Finding] = field(default_factory=list)
    room: int = MAX_FILLED
    weights: dict[tuple[str, ...], int] = field(default_factory=dict)
    answers: dict[tuple[str, ...], object] = field(default_factory=dict)

    def walk(self, value: object, path: Path) -> object:
        match value:
            case str():
                return self.text(value, path)
            case dict():
                for key in value:
                    if "${{" in key:
                        self.report((*path, key), "expression", "a key cannot hold an expression", key=True)
                return {k: self.walk(v, (*path, k)) for k, v in value.items()}
            case list():
                return [self.walk(v, (*path, i)) for i, v in enumerate(value)]
            case _:
                return value

    def text(self, text: str, path: Path) -> object:
        # params are plain data; core/params.py reports expressions in them
        if "${{" not in text or path[:1] == ("params",):
            return text
        parts = parse_template(text)
        if len(parts) == 1 and isinstance(parts[0], Ref):
            filled = self.fill(parts[0], path)
            return str(parts[0]) if isinstance(filled, Ref) else filled
        pieces = [self.piece(part, path) for part in parts]
        joined = "".join(pieces)
        whole = not any(isinstance(part, Broken) for part in parts)
        if whole and parse_template(joined) != joined_parts(pieces):
            message = "what is filled in here would read as another '${{'; leave a space in between"
            self.report(path, "expression", message)
        return joined

    def piece(self, part: Part, path: Path) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, Broken):
            self.report(path, "expression", part.message, at=part.text)
            return part.text
        value = self.fill(part, path)
        if isinstance(value, Ref):
            return str(part)
        text = as_text(value)
        if text is None:
            kind = "null" if value is None else shown(value)
            message = f"{part.name} is {kind}, which cannot stand inside text"
            hint = f"make {part} the whole value, or name a text or number"
            self.report(path, "expression", message, hint=hint, at=str(part))
            return ""
        return text

    def fill(self, ref: Ref, path: Path) -> object:
        """The value of the name; the ref itself when it comes later, or is wrong and was reported."""
        if len(self.findings) >= MAX_FINDINGS:
            return ref  # nobody reads more, and looking for what was meant costs time
        if ref.path not in self.answers:
            self.answers[ref.path] = self.answer(ref)
        answer = self.answers[ref.path]
        if isinstance(answer, _Wrong):
            return self.wrong(path, ref, answer.message)
        return answer if isinstance(answer, Ref) else self.afford(answer, ref, path)

    def answer(self, ref: Ref) -> object:
        first = ref.path[0]
        if first not in self.scope:
            problem = self.late(ref.path)
            return ref if problem is None else _Wrong(problem)
        value: object = self.scope[first]
        if len(ref.path) == 1:
            known = listing(self.scope[first]) or "nothing"
            return _Wrong(f"'{first}' alone is no value ({first} has: {known})")
        for depth, name in enumerate(ref.path[1:], start=1):
            if not isinstance(value, Mapping):
                above = ".".join(ref.path[:depth])
                return _Wrong(f"'{above}' is {shown(value)} and has no '{name}'")
            if name not in value:
                return _Wrong(unknown_name(ref.path[: depth + 1], list(value)))
            value = value[name]
        # missing_params says so, once for all its uses
        return ref if value is None and first == "params" else value

    def afford(self, value: object, ref: Ref, path: Path) -> object:
        if ref.path not in self.weights:
            self.weights[ref.path] = _weight(value)
        self.room -= self.weights[ref.path]
        if self.room >= 0:
            return value
        return self.wrong(path, ref, f"the expressions expand to more than {MAX_FILLED} characters")

    def wrong(self, path: Path, ref: Ref, message: str) -> Ref:
        self.report(path, "name", message, at=ref.name)
        return ref

    def report(
        self, path: Path, code: str, message: str, *, hint: str | None = None, at: str = "", key: bool = False
    ) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding(self.doc, path, code, message, hint=hint, at=at, key=key))


def _resolve_text(text: str, lookup: Callable[[tuple[str, ...]], object]) -> object:
    if "${{" not in text:
        return text
    parts = parse_template(text)
    if len(parts) == 1 and isinstance(parts[0], Ref):
        return _look_up(parts[0], lookup)
    return "".join(_resolved_piece(part, lookup) for part in parts)


def _resolved_piece(part: Part, lookup: Callable[[tuple[str, ...]], object]) -> str:
    if isinstance(part, str):
        return part.replace("$${{", "${{")
    if isinstance(part, Broken):
        raise ExpressionError(f"{part.message}: {shown(part.text)}")
    value = _look_up(part, lookup)
    text = as_text(value)
    if text is None:
        raise ExpressionError(
            f"{part} is {shown(value)}, which cannot stand inside text", hint="make it the whole value"
        )
    return text


def _look_up(ref: Ref, lookup: Callable[[tuple[str, ...]], object]) -> object:
    try:
        return lookup(ref.path)
    except KeyError:
        raise ExpressionError(f"{ref} has no value") from None


def _weight(value: object) -> int:
    match value:
        case str():
            return 1 + len(value)
        case Mapping():
            return 1 + sum(len(str(k)) + _weight(v) for k, v in value.items())
        case list() | tuple():
            return 1 + sum(_weight(v) for v in value)
        case _:
            return 1
