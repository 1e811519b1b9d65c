"""Runs inside a stack: what ms-swift's real parsers take, without the side effects of real arguments.

`accept` reads [["sft", ["--lora_rank", "8"]], ...] on stdin and answers with null or a complaint for each;
`describe` answers with {"sft": {"lora_rank": {"type": "int", ...}, ...}, ...}.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import sys
from argparse import ArgumentParser
from importlib import import_module
from typing import Any

CLASSES = {
    "pt": "PretrainArguments",
    "sft": "SftArguments",
    "rlhf": "RLHFArguments",
    "export": "ExportArguments",
    "infer": "InferArguments",
    "deploy": "DeployArguments",
    "rollout": "RolloutArguments",
    "eval": "EvalArguments",
    "app": "AppArguments",
}


def parser_of(command: str) -> ArgumentParser:
    """The parser that `swift COMMAND` builds, made the way swift.utils.parse_args makes it."""
    utils = import_module("swift.utils.utils")
    with utils._patch_get_type_hints():
        parser: ArgumentParser = import_module("transformers").HfArgumentParser([class_of(command)])
    return parser


def class_of(command: str) -> Any:
    """The dataclass of a command's arguments."""
    return getattr(import_module("swift.arguments"), CLASSES[command])


def complaint(parser: ArgumentParser, argv: list[str]) -> str | None:
    """Why the parser does not take these tokens; None when it does. No dataclass is built."""
    talk = io.StringIO()
    try:
        with contextlib.redirect_stderr(talk), contextlib.redirect_stdout(talk):
            known, rest = parser.parse_known_args(argv)
    except SystemExit:
        lines = talk.getvalue().strip().splitlines()
        return lines[-1] if lines else "the parser ended the process"
    if rest and not getattr(known, "ignore_args_error", False):
        return f"remaining_argv: {rest}"
    return None


def describe(command: str) -> dict[str, Any]:
    """Each field's type, nargs, choices and default, in the words of the committed tables."""
    parser = parser_of(command)
    actions: dict[str, Any] = {}
    for action in parser._actions:
        actions.setdefault(action.dest, action)
    return {
        f.name: {**_action(actions[f.name]), **_default(f)}
        for f in dataclasses.fields(class_of(command))
        if f.init and f.name in actions
    }


def _action(action: Any) -> dict[str, Any]:
    members = getattr(action.type, "__members__", None)
    name = getattr(action.type, "__name__", str(action.type))
    kind = {"string_to_bool": "bool", "<lambda>": "choice"}.get(name, "choice" if members else name)
    spec: dict[str, Any] = {"type": kind}
    choices = [m.value for m in members.values()] if members else action.choices
    if choices is not None:
        spec["choices"] = list(choices)
    if action.nargs is not None:
        spec["nargs"] = action.nargs
    return spec


def _default(field: Any) -> dict[str, Any]:
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    elif field.default is not dataclasses.MISSING:
        value = field.default
    else:
        return {"required": True}
    value = getattr(value, "value", value)
    return {"default": list(value) if isinstance(value, tuple) else value}


def main() -> int:
    """Answer on stdout; all that the packages print while they load goes to stderr."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    answer = os.dup(1)
    os.dup2(2, 1)
    if sys.argv[1] == "describe":
        result: Any = {command: describe(command) for command in CLASSES}
    else:
        asked = json.load(sys.stdin)
        parsers = {command: parser_of(command) for command in sorted({c for c, _ in asked})}
        result = [complaint(parsers[command], argv) for command, argv in asked]
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump(result, out, default=str)
    return 0


if __name__ == "__main__":
    sys.exit(main())
