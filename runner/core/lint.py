"""ms-swift's own flags, checked before anything starts: what its parser would refuse, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from runner.core.argtable import ArgTable, Argument, count_problem, flags_of, misfit, reads_as_flag
from runner.core.plan import texts_of
from runner.core.wording import did_you_mean, listing, shown
from runner.errors import Severity

__all__ = ["ArgProblem", "ArgTable", "check_args"]


@dataclass(frozen=True)
class ArgProblem:
    """One flag that ms-swift would refuse, without its place in a file."""

    name: str
    code: str  # unknown-arg, bad-type, bad-choice, stray-arg; all but bad-* are about the name
    message: str
    hint: str | None = None
    severity: Severity = "error"
    index: int | None = None  # which token of `extra_args`; None: a key of `args`


def check_args(
    command: str, args: Mapping[str, object], extra_args: Sequence[object], table: ArgTable
) -> list[ArgProblem]:
    """All that the real parser would refuse, in the order written; nothing for a command without a table."""
    if command not in table.commands:
        return []
    flags = flags_of(table, command)
    found: list[ArgProblem] = []
    for name, value in args.items():
        if value is not None:
            found += _check_arg(_Scope(command, table, flags), str(name), value)
    found += _check_extra(_Scope(command, table, flags), [str(t) for t in extra_args])
    return [_softened(p, table, _ignores(args, extra_args)) for p in found]


@dataclass(frozen=True)
class _Scope:
    command: str
    table: ArgTable
    flags: Mapping[str, tuple[str, bool]]

    def argument(self, name: str) -> Argument:
        found = self.table.argument(self.command, name)
        assert found is not None
        return found


def _softened(problem: ArgProblem, table: ArgTable, ignored: bool) -> ArgProblem:
    """A warning where ms-swift itself goes on, or where the table is not of the stack's versions."""
    if ignored and problem.code in ("unknown-arg", "stray-arg"):
        return replace(problem, severity="warning", hint="ignore_args_error makes ms-swift go on without it")
    if not table.close:
        source = f"checked against ms-swift {table.release} only as far as other versions tell"
        return replace(problem, severity="warning", hint="; ".join(h for h in (problem.hint, source) if h))
    return problem


def _ignores(args: Mapping[str, object], extra: Sequence[object]) -> bool:
    given = texts_of(args.get("ignore_args_error"))
    if any(str(t).startswith("--ignore_args_error") for t in extra):
        return True
    return len(given) == 1 and misfit(Argument("x", "bool"), given[0]) is None and given[0][0] in "tTyY1"


def _check_arg(scope: _Scope, name: str, value: object) -> Iterator[ArgProblem]:
    tokens = texts_of(value)
    late = any("${{" in t for t in tokens)  # the value is only known when the step starts
    known, negated = scope.flags.get(f"--{name}", (None, False))
    if known is None:
        yield _unknown(scope, name)
    elif negated:
        yield _negated(name, known)
    elif known != name:
        yield _spelling(name, known, known)
    elif not late:
        yield from _check_value(scope, known, value, tokens)


def _check_value(scope: _Scope, name: str, value: object, tokens: list[str]) -> Iterator[ArgProblem]:
    argument = scope.argument(name)
    if problem := count_problem(argument, tokens):
        yield ArgProblem(name, "bad-type", f"'{name}' {problem}", _count_hint(name, tokens))
        return
    items = value if isinstance(value, list) else [value]
    for item, token in zip(items, tokens, strict=True):
        if len(tokens) > 1 and reads_as_flag(token, scope.flags):
            message = f"'{name}' cannot have {shown(item)} among several values: ms-swift reads it as a flag"
            yield ArgProblem(name, "bad-type", message, "only a single value may start with a dash")
        elif must := misfit(argument, token):
            yield _misfit(argument, must, item, token)


def _check_extra(scope: _Scope, tokens: list[str]) -> Iterator[ArgProblem]:
    at = 0
    while at < len(tokens):
        if not reads_as_flag(tokens[at], scope.flags):
            message = f"{shown(tokens[at])} belongs to no flag"
            hint = "extra_args is a list of flags, each followed by its values"
            yield ArgProblem(tokens[at], "stray-arg", message, hint, index=at)
            at += 1
            continue
        end = at + 1
        while end < len(tokens) and not reads_as_flag(tokens[end], scope.flags):
            end += 1
        yield from _check_flag(scope, tokens[at], tokens[at + 1 : end], at)
        at = end


def _check_flag(scope: _Scope, flag: str, values: list[str], at: int) -> Iterator[ArgProblem]:
    written, _, inline = flag.partition("=") if flag not in scope.flags else (flag, "", "")
    joined = "=" in flag and flag not in scope.flags
    name, negated = scope.flags.get(written, (None, False))
    if name is None:
        if "${{" not in written:
            yield replace(_unknown(scope, written.lstrip("-"), written), index=at)
        return
    if written not in (f"--{name}", f"--no_{name}"):
        yield replace(_spelling(written, name, f"--no_{name}" if negated else f"--{name}"), index=at)
        return
    given = [inline] if joined else values
    takes = 0 if negated else len(given) if scope.argument(name).nargs == "+" else min(1, len(given))
    if negated and joined:
        yield replace(_negated(written[2:], name), index=at)
    elif problem := None if negated else count_problem(scope.argument(name), given[:takes]):
        yield ArgProblem(name, "bad-type", f"'{name}' {problem}", index=at)
    else:
        for i, token in enumerate(given[:takes]):
            must = None if "${{" in token else misfit(scope.argument(name), token)
            if must:
                place = at if joined else at + 1 + i
                yield replace(_misfit(scope.argument(name), must, token, token), index=place)
    spare = values if joined else values[takes:]
    for i, token in enumerate(spare, start=at + 1 + len(values) - len(spare)):
        what = "no value" if negated else "one value"
        yield ArgProblem(
            token, "stray-arg", f"'{name}' takes {what}; {shown(token)} belongs to no flag", index=i
        )


def _unknown(scope: _Scope, name: str, written: str = "") -> ArgProblem:
    """The most helpful thing to say about a name that the command does not have."""
    table, command = scope.table, scope.command
    message = f"ms-swift {table.release} has no argument '{name}' for {command}"
    plain = name.replace("-", "_")
    if told := table.explained.get(plain):
        return ArgProblem(name, "unknown-arg", f"{message}: {told['says']}", told["remedy"])
    if written == "--" or (written and not written.startswith("--")):
        right = f"write '--{name}'" if f"--{name}" in scope.flags else "a flag is '--' and a name"
        return ArgProblem(name, "unknown-arg", f"ms-swift has no flag '{written}'", right)
    if commands := table.having(plain):
        return ArgProblem(
            name, "unknown-arg", message, f"'{plain}' is an argument of {listing(commands)}, not of {command}"
        )
    for other in table.others:
        if plain in other.commands.get(command, {}):
            where = f"ms-swift {other.release} with transformers {other.transformers}"
            return ArgProblem(
                name,
                "unknown-arg",
                f"{message}; {where} has it",
                f"leave it out, or use a stack with {where}",
            )
    starting = table.starting(command, name)
    if len(starting) == 1:
        return ArgProblem(
            name, "unknown-arg", f"{message} - did you mean '{starting[0]}'?", "names are written in full"
        )
    close = did_you_mean(name, table.names(command))
    hint = f"arguments that start so: {listing(starting)}" if starting and not close else None
    return ArgProblem(name, "unknown-arg", message + close, hint)


def _spelling(name: str, known: str, right: str) -> ArgProblem:
    message = f"'{name}' is written '{right}' here: what the runner adds and reads goes by that name"
    return ArgProblem(known, "unknown-arg", message, f"write '{right}'")


def _negated(name: str, known: str) -> ArgProblem:
    return ArgProblem(name, "unknown-arg", f"'{name}' takes no value", f"write '{known}: false'")


def _misfit(argument: Argument, must: str, value: object, token: str) -> ArgProblem:
    name = argument.name
    if must == "choice":
        choices = [str(c) for c in argument.choices or () if c is not None]
        few = len(choices) <= 12
        one_of = f"one of {listing(choices)}" if few else f"one of its {len(choices)} choices"
        message = f"'{name}' must be {one_of}, got {shown(value)}{did_you_mean(token, choices)}"
        return ArgProblem(
            name, "bad-choice", message, None if few else "choices: " + listing(choices, limit=99)
        )
    if must == "left out":
        message = f"'{name}' cannot be given to an ms-swift command: no text becomes a {argument.type}"
        return ArgProblem(name, "bad-type", message, "leave it out")
    hint = (
        f"write {int(value)}"
        if isinstance(value, float) and must == "a whole number" and value == value // 1
        else None
    )
    return ArgProblem(name, "bad-type", f"'{name}' must be {must}, got {shown(value)}", hint)


def _count_hint(name: str, tokens: list[str]) -> str | None:
    return f"leave '{name}' out, or give it a value" if not tokens else None
