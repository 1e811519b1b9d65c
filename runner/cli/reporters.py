"""What a stack has besides the packages that it names: its lock, and its environment on this host."""

from __future__ import annotations

import re
from collections.abc import Callable

from runner.backends.venv import find_stack
from runner.data.stacks import load_stack, lock_of, machine_arch
from runner.store.folders import default_home


def has_package(stack: str) -> Callable[[str], bool | None]:
    """Whether the stack has a package; None for a stack without a lock, whose packages nobody knows all."""

    def has(package: str) -> bool | None:
        lock = lock_of(load_stack(stack), machine_arch())
        if not lock.exists():
            return None
        if re.search(rf"^{re.escape(package)}==", lock.read_text(encoding="utf-8"), re.MULTILINE):
            return True
        environment = find_stack(default_home(), stack)
        return environment is not None and any(
            environment.glob(f"lib/python3*/site-packages/{package}-*.dist-info")
        )

    return has
