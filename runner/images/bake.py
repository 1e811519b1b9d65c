"""The catalogue as targets for `docker buildx bake`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from runner.core.imagename import short_tag, swift_name
from runner.core.lockfile import ARCHES
from runner.core.stack import Stack
from runner.images.engine import PLATFORMS


def bake_file(stacks: Sequence[Stack], registry: str) -> dict[str, Any]:
    """One target for each stack, generation and architecture, one group for each stack and generation."""
    targets: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    for stack in stacks:
        swift = swift_name(str(stack.version("ms-swift")), None)
        for generation in stack.generations:
            group = _name(f"{stack.stack}-{generation}")
            for arch in ARCHES:
                targets[f"{group}-{arch}"] = {
                    "context": ".",
                    "dockerfile": f"Dockerfiles/rendered/{stack.stack}-{generation}.Dockerfile",
                    "platforms": [PLATFORMS[arch]],
                    "tags": [f"{registry}:{short_tag(swift, generation, stack.python, arch)}-{stack.stack}"],
                }
            groups[group] = {"targets": [f"{group}-{arch}" for arch in ARCHES]}
    return {"group": {"default": {"targets": list(targets)}, **groups}, "target": targets}


def _name(text: str) -> str:
    """A bake target's name has no dots."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)
