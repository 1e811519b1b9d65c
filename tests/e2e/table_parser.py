"""An argparse parser made from a committed table: for megatron's commands, which no CPU can import."""

from __future__ import annotations

import contextlib
import io
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from runner.core.argtable import ArgTable, Argument


def parser_from(table: ArgTable, command: str) -> ArgumentParser:
    """What HfArgumentParser would build for the command."""
    parser = ArgumentParser()
    for name in table.commands[command]:
        argument = table.argument(command, name)
        assert argument is not None
        flags = [f"--{name}", *([f"--{name.replace('_', '-')}"] if "_" in name else [])]
        more: dict[str, Any] = {"const": True} if argument.nargs == "?" else {}
        if argument.choices is not None:
            more["choices"] = [str(c) for c in argument.choices]
        parser.add_argument(*flags, nargs=argument.nargs, type=_type(argument), dest=name, **more)
        if argument.negation:
            dashed = f"--no-{name.replace('_', '-')}"
            parser.add_argument(f"--no_{name}", dashed, action="store_false", dest=name)
    return parser


def complaint(parser: ArgumentParser, argv: list[str]) -> str | None:
    """Why the parser does not take these tokens; None when it does."""
    talk = io.StringIO()
    try:
        with contextlib.redirect_stderr(talk), contextlib.redirect_stdout(talk):
            known, rest = parser.parse_known_args(argv)
    except SystemExit:
        return (talk.getvalue().strip().splitlines() or ["the parser ended the process"])[-1]
    if rest and not getattr(known, "ignore_args_error", False):
        return f"remaining_argv: {rest}"
    return None


def _type(argument: Argument) -> Any:
    def truth(text: str) -> bool:
        if text.lower() not in ("yes", "true", "t", "y", "1", "no", "false", "f", "n", "0"):
            raise ArgumentTypeError(f"no truth value: {text}")
        return text.lower() in ("yes", "true", "t", "y", "1")

    def never(text: str) -> str:
        raise ArgumentTypeError(f"no text becomes a {argument.type}: {text}")

    if argument.choices is not None:
        return str
    return {"int": int, "float": float, "str": str, "bool": truth}.get(argument.type, never)
