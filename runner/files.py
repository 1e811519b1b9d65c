"""Small files: there whole or not at all, and read without surprises."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import runner
from runner.errors import UnreachableError

INSIDE = Path(runner.__file__).parent / "inside"  # scripts that run inside a stack, not in the runner


def write_atomic(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a file so that it is there whole or not at all, and if `durable` also after a power loss."""
    draft = path.with_name(path.name + ".new")
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as f:
            f.write(text)
            if durable:
                f.flush()
                os.fsync(f.fileno())
        draft.replace(path)
    except OSError as e:
        raise UnreachableError(
            f"cannot write {path}: {e.strerror}", hint="free disk space or set RUNNER_HOME"
        ) from e


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None when there is no such file or it is not one."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hex."""
    import hashlib

    digest = hashlib.sha256()
    with path.open("rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
