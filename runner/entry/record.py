"""The records beside attempt.json: there whole or not at all, even over a power cut."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def record(folder: Path, name: str, value: dict[str, Any], *, first: bool = False) -> None:
    """Write NAME.json; with `first` FileExistsError when somebody has written it already."""
    part = folder / f".{name}.{os.getpid()}.part"
    with part.open("w") as file:
        json.dump({"schema": f"{name}/1", **value}, file)
        file.flush()
        os.fsync(file.fileno())
    if first:
        os.link(part, folder / f"{name}.json")
        part.unlink()
    else:
        part.replace(folder / f"{name}.json")
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
