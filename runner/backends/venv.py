"""A stack as a virtual environment of this machine: find it again, or use one that is there."""

from __future__ import annotations

import json
from pathlib import Path

from runner.core.stack import Stack
from runner.errors import HostError
from runner.files import read_json, write_atomic

MARK = "stack.json"


def stack_folder(home: Path, name: str) -> Path:
    """Where the stack's environment is, or would be."""
    return home / "stacks" / name


def find_stack(home: Path, name: str) -> Path | None:
    """The root of an installed environment of this stack; None when it is not there or not whole."""
    mark = read_json(stack_folder(home, name) / MARK)
    root = Path(mark["root"]) if mark else None
    return root if root and (root / "bin" / "python").exists() else None


def adopt_stack(home: Path, stack: Stack, root: Path) -> None:
    """Use an environment that is already there (conda, a venv in an image) as this stack."""
    if not (root / "bin" / "python").exists():
        raise HostError(f"{root} is no Python environment: it has no bin/python")
    write_mark(home, stack, root, "")


def write_mark(home: Path, stack: Stack, root: Path, digest: str) -> None:
    """Say that the stack is whole, and where; the digest is of the pins that were installed."""
    mark = {"stack": stack.stack, "digest": digest, "root": str(root.absolute())}
    write_atomic(stack_folder(home, stack.stack) / MARK, json.dumps(mark) + "\n")
