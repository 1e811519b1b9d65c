"""The params of a spec: what may stand there, and what `--set name=value` makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runner.core.document import Document, Path, finding
from runner.core.template import NAME, Ref, parse_template, refs
from runner.core.wording import did_you_mean, listing, printable, shown
from runner.core.yamltext import parse_value
from runner.errors import Finding, SpecError, UsageError

MAX_FINDINGS = 100


def params_findings(doc: Document) -> list[Finding]:
    """What is wrong with the params of this document: they are named plain values without expressions."""
    declared = doc.value.get("params")
    if not isinstance(declared, dict):
        return []  # validate says so
    found = [
        finding(
            doc,
            ("params", name),
            "param-name",
            f"a param cannot be named {shown(name)}",
            hint="use letters, digits, '_' and '-'",
            key=True,
        )
        for name in declared
        if not NAME.fullmatch(name)
    ]
    for path in expressions_in(declared, ("params",)):
        message = "a param cannot hold an expression"
        found.append(finding(doc, path, "expression", message, hint="write $${{ for a literal ${{", at="${{"))
    return found[:MAX_FINDINGS]


def apply_sets(params: Mapping[str, object], sets: Sequence[str]) -> dict[str, object]:
    """The params with every `name=value` applied in order; UsageError when one does not fit."""
    result = dict(params)
    for assignment in sets:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set {shown(assignment)} has no value", hint="write --set name=value")
        shown_name = printable(name.strip())
        result = _assign(result, name.strip().split("."), _set_value(shown_name, text), shown_name)
    return result


def fits(default: object, value: object) -> bool:
    """Whether a value is of the type of a param's default, so that `--set` would take it."""
    try:
        _fitting(default, value, "")
    except UsageError:
        return False
    return True


def missing_params(doc: Document, params: Mapping[str, object]) -> list[Finding]:
    """A finding for each param without a value that the document uses, at its first use."""
    first: dict[str, tuple[Ref, Path]] = {}
    for ref, path in refs(doc.value):
        if ref.path[0] == "params" and path[:1] != ("params",) and _value_of(params, ref) is None:
            first.setdefault(ref.name, (ref, path))
    return [_must_be_given(doc, ref, path) for ref, path in list(first.values())[:MAX_FINDINGS]]


def _must_be_given(doc: Document, ref: Ref, path: Path) -> Finding:
    name = ".".join(ref.path[1:])
    hint = f"add --set {name}=..., or give it a value under params"
    return finding(doc, path, "param-missing", f"the param '{name}' must be given", hint=hint, at=ref.name)


def _value_of(params: Mapping[str, object], ref: Ref) -> object:
    """The value of the param; not None when there is no such param, which `evaluate` reports."""
    value: object = params
    for name in ref.path[1:]:
        if not isinstance(value, Mapping) or name not in value:
            return ref
        value = value[name]
    return value


def expressions_in(value: object, path: Path) -> list[Path]:
    """Where in a value an expression stands."""
    match value:
        case str():
            return [path] if any(not isinstance(p, str) for p in parse_template(value)) else []
        case dict():
            return [p for k, v in value.items() for p in expressions_in(v, (*path, k))]
        case list():
            return [p for i, v in enumerate(value) for p in expressions_in(v, (*path, i))]
        case _:
            return []


def _set_value(name: str, text: str) -> object:
    try:
        value = parse_value(text, f"--set {name}")
    except SpecError as problem:
        hint = f"put it in quotes for the shell and for YAML: --set {name}='\"...\"'"
        raise UsageError(
            f"cannot read --set {name}={shown(text)[1:-1]}: {problem.message}", hint=hint
        ) from None
    if expressions_in(value, ()):
        raise UsageError(
            f"--set {name}: a param cannot hold an expression", hint="write $${{ for a literal ${{"
        )
    return value


def _assign(params: Mapping[str, object], path: Sequence[str], value: object, name: str) -> dict[str, object]:
    key = path[0]
    if key not in params:
        known = f"the params are: {listing(params)}" if params else "the spec has no params"
        raise UsageError(f"unknown param '{name}'{did_you_mean(key, params)}", hint=known)
    default = params[key]
    if len(path) > 1:
        if not isinstance(default, Mapping):
            raise UsageError(f"--set {name}: {shown(key)} is {shown(default)}, no mapping, and has no parts")
        return {**params, key: _assign(default, path[1:], value, name)}
    return {**params, key: _fitting(default, value, name)}


def _fitting(default: object, value: object, name: str) -> object:
    """The value as the default's type; UsageError when it is of another."""
    if default is None:
        return value
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(default) is type(value):
        return value
    hint = f"the default is {shown(default)}"
    if isinstance(default, str):
        hint += f"; for text write --set {name}='\"...\"'"
    raise UsageError(f"--set {name} must be {_type(default)}, got {shown(value)}", hint=hint)


def _type(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a mapping"
