"""Checks values against a pydantic model, and says what is wrong in words and places of the document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from runner.core.document import Document, Path, finding, path_text
from runner.core.params import apply_sets, missing_params, params_findings
from runner.core.schema import Place, locate
from runner.core.template import refs
from runner.core.wording import did_you_mean, listing, shown
from runner.errors import Finding

__all__ = ["apply_sets", "in_order", "missing_params", "params_findings", "validate"]

M = TypeVar("M", bound=BaseModel)

MAX_FINDINGS = 100
_EXPRESSION_CODES = frozenset(("expression", "name", "param-missing"))
_VALUE_CODES = frozenset(("type", "value", "choice"))


class _Problem(NamedTuple):
    code: str
    path: Path
    message: str
    key: bool = False
    hint: str | None = None


def validate(doc: Document, model: type[M], value: object = None) -> tuple[M | None, list[Finding]]:
    """The model of the value (by default the whole document), or findings: unknown keys, then by place."""
    data = doc.value if value is None else value
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        raw = error.errors(include_url=False)
    # a hostile file makes more errors than anybody reads; unknown keys stay first
    unknown = [e for e in raw if e["type"] == "extra_forbidden"][:MAX_FINDINGS]
    others = [e for e in raw if e["type"] != "extra_forbidden" and not _was_reported(e["input"])]
    placed = [(locate(model, data, e["loc"]), e) for e in unknown + others[: 3 * MAX_FINDINGS]]
    problems = _merged([_problem(place, e, data) for place, e in placed])
    found = [finding(doc, p.path, p.code, p.message, hint=p.hint, key=p.key) for p in problems]
    return None, in_order(found)[:MAX_FINDINGS]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings as they are printed: unknown keys first, then by place; one for each wrong expression."""
    ordered = sorted(dict.fromkeys(findings), key=lambda f: (f.code != "unknown-key", f.line, f.col))
    expressions = {f.path for f in ordered if f.code in _EXPRESSION_CODES}
    return [f for f in ordered if f.code not in _VALUE_CODES or f.path not in expressions]


def _was_reported(value: object) -> bool:
    """Whether a param is left in this text, which only one that must be given (or is wrong) is."""
    return isinstance(value, str) and any(ref.path[0] == "params" for ref, _ in refs(value))


def label(path: Path, data: object) -> str:
    """How a message names the thing at this path: step 2 ('train'), resources.npus, the file."""
    if not path:
        return "the file"
    if not isinstance(path[-1], int):
        return path_text(path[-1:])
    above = str(path[-2]) if len(path) > 1 and isinstance(path[-2], str) else "item"
    noun = above[:-1] if above.endswith("s") and len(above) > 2 else f"{above} item"
    thing = _value_at(data, path)
    name = thing.get("name") if isinstance(thing, Mapping) else None
    return f"{noun} {path[-1] + 1}" + (f" ({shown(name)})" if isinstance(name, str) and name else "")


def _merged(problems: list[_Problem]) -> list[_Problem]:
    """One problem for each place: what several branches of a choice ask for becomes 'a or b'."""
    merged: dict[tuple[Path, str], _Problem] = {}
    for p in problems:
        slot = (p.path, p.code)
        known = merged.get(slot)
        if known is None:
            merged[slot] = p
        elif p.code == "type" and p.message != known.message:
            merged[slot] = known._replace(message=_either(known.message, p.message))
    # when one branch of a choice got further, the others were not meant
    deeper = {p.path[:depth] for p in merged.values() for depth in range(len(p.path))}
    return [p for p in merged.values() if p.code != "type" or p.path not in deeper]


def _either(one: str, other: str) -> str:
    first, got, tail = one.partition(", got ")
    wanted = other.partition(", got ")[0].partition(" must be ")[2]
    return f"{first} or {wanted}{got}{tail}" if wanted and f" {wanted}" not in first else one


def _problem(place: Place, error: Any, data: object) -> _Problem:
    kind = error["type"]
    context: Mapping[str, Any] = error.get("ctx", {})
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(place, error, data)
    name = _name(place, data)
    got = shown(error["input"])
    if kind in _WANTED:
        hint = f'put it in quotes: "{got}"' if kind == "string_type" and _is_scalar(error["input"]) else None
        return _Problem("type", place.path, f"{name} must be {_WANTED[kind]}, got {got}", place.is_key, hint)
    if kind in _BOUNDS:
        words = _BOUNDS[kind].format(**context)
        return _Problem("value", place.path, f"{name} must be {words}, got {got}", place.is_key)
    return _Problem("value", place.path, f"{name}: {_lower(error['msg'])}", place.is_key)


def _unknown_key(place: Place, error: Any, data: object) -> _Problem:
    word = str(place.path[-1])
    fields = place.fields
    inside = [f"'{f}'" for f, names in place.below.items() if word in names]
    if inside:
        message = f"unknown key {shown(word)} - it belongs under {' or '.join(inside)}"
        return _Problem("unknown-key", place.path, message, True)
    meant = did_you_mean(word, fields)
    hint = None if meant or not fields else f"the keys here are: {listing(fields)}"
    if hint and "args" in fields:
        hint = f"a flag of the program belongs under 'args'; {hint}"
    return _Problem("unknown-key", place.path, f"unknown key {shown(word)}{meant}", True, hint)


def _missing_key(place: Place, error: Any, data: object) -> _Problem:
    message = f"{label(place.path[:-1], data)} needs '{place.path[-1]}'"
    return _Problem("missing-key", place.path, message)


def _missing_tag(place: Place, error: Any, data: object) -> _Problem:
    tag = _tag_name(error)
    message = f"{label(place.path, data)} needs '{tag}'"
    hint = f"the {tag}s are: {listing(place.tags, 40)}" if place.tags else None
    return _Problem("missing-key", (*place.path, tag), message, False, hint)


def _unknown_tag(place: Place, error: Any, data: object) -> _Problem:
    tag = _tag_name(error)
    value = error["input"].get(tag) if isinstance(error["input"], Mapping) else None
    path = (*place.path, tag)
    if not isinstance(value, str):
        return _Problem("type", path, f"{tag} must be text, got {shown(value)}")
    message = f"unknown {tag} {shown(value)}{did_you_mean(value, place.tags)}"
    return _Problem(f"unknown-{tag}", path, message, False, f"the {tag}s are: {listing(place.tags, 40)}")


def _not_a_choice(place: Place, error: Any, data: object) -> _Problem:
    value = error["input"]
    options = re.findall(r"'([^']*)'", error["ctx"]["expected"])
    if not options:
        options = error["ctx"]["expected"].replace(" or ", ", ").split(", ")
    meant = did_you_mean(value, options) if isinstance(value, str) else ""
    wanted = f"one of {listing(options, 40)}" if len(options) > 1 else f"'{options[0]}'"
    message = f"{_name(place, data)} must be {wanted}, got {shown(value)}{meant}"
    return _Problem("choice", place.path, message, place.is_key)


def _too_few_or_many(place: Place, error: Any, data: object) -> _Problem:
    context = error["ctx"]
    limit = context.get("min_length", context.get("max_length"))
    bound = "at least" if "min_length" in context else "at most"
    unit = "characters" if context.get("field_type", "String") == "String" else "items"
    unit = unit[:-1] if limit == 1 else unit
    has = context.get("actual_length", len(error["input"]) if isinstance(error["input"], str) else None)
    message = f"{_name(place, data)} needs {bound} {limit} {unit}, has {has if has is not None else 'more'}"
    return _Problem("value", place.path, message, place.is_key)


def _no_match(place: Place, error: Any, data: object) -> _Problem:
    what = "the key" if place.is_key else _name(place, data)
    message = f"{what} {shown(error['input'])} does not fit the pattern {error['ctx']['pattern']}"
    return _Problem("value", place.path, message, place.is_key)


def _own_words(place: Place, error: Any, data: object) -> _Problem:
    """What one of our validators said."""
    text = str(error["ctx"]["error"]) if "error" in error.get("ctx", {}) else error["msg"]
    if text.startswith(("must ", "needs ")):
        text = f"{_name(place, data)} {text}, got {shown(error['input'])}"
    return _Problem("value", place.path, text, place.is_key)


def _tag_name(error: Any) -> str:
    return str(error["ctx"]["discriminator"]).strip("'").removesuffix("()").lstrip("_")


def _name(place: Place, data: object) -> str:
    """The label, with the key above where the key alone is a person's own word (env.A)."""
    if not place.fields and all(isinstance(p, str) for p in place.path[-2:]):
        return path_text(place.path[-2:]) or label((), data)
    return label(place.path, data)


def _value_at(data: object, path: Path) -> object:
    for part in path:
        if isinstance(data, Mapping):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | float)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


_WHOLE, _NUMBER, _BOOL = "a whole number", "a number", "true or false"
_LIST, _MAPPING = "a list", "a mapping (key: value)"
_WANTED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing"), _NUMBER),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), _BOOL),
    "string_type": "text",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), _LIST),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), _MAPPING),
    "none_required": "null",
}
_BOUNDS = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "multiple_of": "a multiple of {multiple_of}",
}
_SPECIAL: dict[str, Callable[[Place, Any, object], _Problem]] = {
    "extra_forbidden": _unknown_key,
    "missing": _missing_key,
    "union_tag_not_found": _missing_tag,
    "union_tag_invalid": _unknown_tag,
    "literal_error": _not_a_choice,
    "enum": _not_a_choice,
    "too_short": _too_few_or_many,
    "too_long": _too_few_or_many,
    "string_too_short": _too_few_or_many,
    "string_too_long": _too_few_or_many,
    "string_pattern_mismatch": _no_match,
    "value_error": _own_words,
    "assertion_error": _own_words,
}
