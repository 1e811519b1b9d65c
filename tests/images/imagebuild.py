"""What the tests of real builds share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

PROJECT = Path(__file__).parents[2]
BASE = "base:bookworm"
Builder = Callable[..., "subprocess.CompletedProcess[str]"]


def lacking(what: str) -> NoReturn:
    """Skip for this reason; where RUNNER_NEEDS_DOCKER is set that is a failure."""
    if os.environ.get("RUNNER_NEEDS_DOCKER"):
        pytest.fail(what)
    pytest.skip(what)


def need(*programs: str) -> None:
    """Skip where one of them is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            lacking(f"there is no {program}")


def build(build_image: Builder, wheelhouse: Path, *args: str | Path, **more: Any) -> dict[str, Any]:
    """Build the cpu image and give its record."""
    done = build_image(
        "build", "--generation", "cpu", "--base", BASE, "--wheelhouse", wheelhouse, "--json", *args, **more
    )
    (record,) = json.loads(done.stdout)["builds"]
    return dict(record)
