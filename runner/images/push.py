"""Pushes images, and joins those of two architectures under one name."""

from __future__ import annotations

import re
from collections.abc import Callable

from runner.errors import RunnerError
from runner.images.engine import Engine

_DIGEST = re.compile(r"digest: (sha256:[0-9a-f]{64})")


def push_image(engine: Engine, tag: str, say: Callable[[str], None]) -> str:
    """Push it and give the digest that the registry has it by; RunnerError with docker's words."""
    digest, last = "", ""

    def take(line: str) -> None:
        nonlocal digest, last
        if m := _DIGEST.search(line):
            digest = m[1]
        last = line.strip() or last
        say(line)

    code = engine.stream(["push", tag], {}, take)
    if code or not digest:
        hint = "`docker login` with the registry, and name it: --registry HOST/NAME"
        raise RunnerError(f"{tag} was not pushed: {last or code}", hint=hint)
    return digest


def join(engine: Engine, name: str, parts: list[str]) -> str:
    """Make `name` the images of several architectures, all pushed before; its digest."""
    engine.run("manifest", "create", "--amend", name, *parts)
    return engine.run("manifest", "push", "--purge", name).strip().splitlines()[-1]
