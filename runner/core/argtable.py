"""What ms-swift's parser accepts, as data, and how it reads tokens: argparse's rules, Python 3.10 to 3.12."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")  # argparse: only these may start with a dash and still be values


@dataclass(frozen=True)
class Argument:
    """One argument of a command, as transformers' HfArgumentParser gives it to argparse."""

    name: str
    type: str  # int, float, str, bool, else a type that no text on a command line becomes
    nargs: str | None = None  # None: one value, "?": none or one, "+": one or more
    choices: tuple[object, ...] | None = None
    default: object = None

    @classmethod
    def of(cls, name: str, spec: Mapping[str, Any]) -> Argument:
        """From its entry in a table."""
        choices = spec.get("choices")
        return cls(
            name,
            spec["type"],
            spec.get("nargs"),
            None if choices is None else tuple(choices),
            spec.get("default"),
        )

    @property
    def negation(self) -> bool:
        """True when there is a `--no_x` flag as well."""
        return self.type == "bool" and self.default is True


@dataclass(frozen=True)
class ArgTable:
    """The arguments of every command of one ms-swift with one transformers."""

    ms_swift: str
    transformers: str
    commands: Mapping[str, Mapping[str, Mapping[str, Any]]]
    close: bool = True  # False: of another version than the stack has, so nothing is certain
    others: tuple[ArgTable, ...] = ()
    explained: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> ArgTable:
        """From a loaded table."""
        commands: dict[str, dict[str, Mapping[str, Any]]] = {c: {} for c in raw["commands"]}
        for group in raw["groups"]:
            for command in group["commands"]:
                commands[command].update(group["arguments"])
        return cls(
            raw.get("asked", raw["ms_swift"]),
            raw["transformers"],
            commands,
            raw.get("close", True),
            tuple(cls.of(other) for other in raw.get("others", ())),
            raw.get("explained", {}),
        )

    @property
    def release(self) -> str:
        """How a message names the version: '4.3'."""
        return ".".join(self.ms_swift.split(".")[:2])

    def names(self, command: str) -> list[str]:
        """All arguments of a command that a person may give."""
        return sorted(n for n in self.commands.get(command, {}) if not n.startswith("_"))

    def argument(self, command: str, name: str) -> Argument | None:
        """One argument; None when the command has none of that name."""
        spec = self.commands.get(command, {}).get(name)
        return None if spec is None else Argument.of(name, spec)

    def having(self, name: str) -> list[str]:
        """The commands that have an argument."""
        return [c for c, arguments in self.commands.items() if name in arguments]

    def starting(self, command: str, prefix: str) -> list[str]:
        """The arguments that a name is the beginning of: argparse takes it when there is just one."""
        plain = prefix.replace("-", "_")
        return [n for n in self.names(command) if plain and n.startswith(plain)]


def flags_of(table: ArgTable, command: str) -> dict[str, tuple[str, bool]]:
    """Every flag as it is written -> (argument, whether it is the `--no_` form)."""
    flags: dict[str, tuple[str, bool]] = {}
    for name, spec in table.commands.get(command, {}).items():
        dashed = name.replace("_", "-")
        flags[f"--{name}"] = flags[f"--{dashed}"] = (name, False)
        if spec["type"] == "bool" and spec.get("default") is True:
            flags[f"--no_{name}"] = flags[f"--no-{dashed}"] = (name, True)
    return flags


def reads_as_flag(token: str, flags: Mapping[str, object]) -> bool:
    """Whether argparse takes a token for a flag, known or not, rather than for a value."""
    if len(token) < 2 or token[0] != "-":
        return False
    if token in flags or token == "--" or (token.startswith("-h") and not token.startswith("--")):
        return True
    start = token.split("=", 1)[0]
    if token.startswith("--") and any(f.startswith(start) for f in [*flags, "--help"]):
        return True
    return not (_NEGATIVE.fullmatch(token) or " " in token)


def misfit(argument: Argument, token: str) -> str | None:
    """What a value must be when this one cannot become the argument's type or is no choice; None: it fits."""
    if token == "--":
        return "a value (the parser drops a lone '--')"
    if argument.choices is not None:
        return None if token in map(str, argument.choices) else "choice"
    match argument.type:
        case "int":
            return None if _becomes(int, token) else "a whole number"
        case "float":
            return None if _becomes(float, token) else "a number"
        case "bool":
            return None if token.lower() in _TRUTH else "true or false"
        case "str":
            return None
    return "left out"


def count_problem(argument: Argument, tokens: Sequence[str]) -> str | None:
    """Why so many values cannot be given to the argument; None: they can."""
    if len(tokens) == 0 and argument.nargs != "?":
        return "needs a value"
    if len(tokens) > 1 and argument.nargs != "+":
        return f"takes one value, got {len(tokens)}"
    return None


_TRUTH = ("yes", "true", "t", "y", "1", "no", "false", "f", "n", "0")


def _becomes(kind: type[int] | type[float], token: str) -> bool:
    try:
        kind(token)
    except ValueError:
        return False
    return True
