"""The records beside attempt.json: there whole or not at all, even over a power cut."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from pathlib import Path
from typing import Any

AGAIN_S = 2.0


def record_end(folder: Path, value: dict[str, Any]) -> None:
    """Write exit.json, however long the disk stays full: an end that is not written is a lost run."""
    while True:
        try:
            return record(folder, "exit", value)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            time.sleep(AGAIN_S)


def record(folder: Path, name: str, value: dict[str, Any], *, first: bool = False) -> None:
    """Write NAME.json; with `first` FileExistsError when somebody has written it already."""
    part = folder / f".{name}.{os.getpid()}.part"
    try:
        with part.open("w") as file:
            json.dump({"schema": f"{name}/1", **value}, file)
            file.flush()
            if not first:  # that it is there is all that counts of it after a power cut
                os.fsync(file.fileno())
        if first:
            os.link(part, folder / f"{name}.json")
        else:
            part.replace(folder / f"{name}.json")
    finally:
        part.unlink(missing_ok=True)
    fd = os.open(folder, os.O_RDONLY)
    with contextlib.suppress(OSError):  # a file system that cannot sync folders
        os.fsync(fd)
    os.close(fd)
