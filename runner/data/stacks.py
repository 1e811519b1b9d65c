"""The stacks of the catalogue, read from Dockerfiles/stacks."""

from __future__ import annotations

import os
from pathlib import Path

import runner
from runner.core.lockfile import ARCHES
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


def lock_of(stack: Stack, arch: str) -> Path:
    """The file with all packages of the stack for `x86` or `arm`, pinned by hash."""
    return (
        CATALOGUE
        / "locks"
        / (f"{stack.stack}.txt" if stack.resolve.universal else f"{stack.stack}-{ARCHES[arch]}.txt")
    )


def machine_arch() -> str:
    """`x86` or `arm`, whichever this machine is."""
    return "arm" if os.uname().machine in ("aarch64", "arm64") else "x86"


def locks_of(stack: Stack) -> dict[str, str]:
    """The texts of all locks of the stack that there are, by file name."""
    files = {lock_of(stack, arch) for arch in ARCHES}
    return {f.name: f.read_text(encoding="utf-8") for f in sorted(files) if f.exists()}


def default_stack(generation: str) -> Stack:
    """The stack that is taken for a generation when none is named."""
    for name in stack_names():
        if generation in (stack := load_stack(name)).default_for:
            return stack
    raise UsageError(f"no stack is for generation '{generation}'", hint="generations: A2, A3, 950, cpu")
