"""The stacks of the catalogue, read from Dockerfiles/stacks."""

from __future__ import annotations

from pathlib import Path

import runner
from runner.core.stack import Stack
from runner.core.validate import validate
from runner.core.wording import did_you_mean
from runner.core.yamltext import read_yaml
from runner.errors import SpecError, UsageError

CATALOGUE = Path(runner.__file__).parent.parent / "Dockerfiles"


def stack_names() -> list[str]:
    """The names of all stacks."""
    return sorted(p.stem for p in (CATALOGUE / "stacks").glob("*.yaml"))


def load_stack(name: str) -> Stack:
    """One stack by its name; UsageError when there is none, SpecError when its file is wrong."""
    path = CATALOGUE / "stacks" / f"{name}.yaml"
    if name not in stack_names():
        raise UsageError(
            f"there is no stack '{name}'{did_you_mean(name, stack_names())}",
            hint="stacks: " + ", ".join(stack_names()),
        )
    doc = read_yaml(path.read_bytes(), str(path))
    stack, findings = validate(doc, Stack)
    if stack is None or findings:
        raise SpecError(findings)
    return stack


def lock_of(name: str) -> Path:
    """The file with all packages of the stack, pinned by hash."""
    return CATALOGUE / "locks" / f"{name}.txt"
