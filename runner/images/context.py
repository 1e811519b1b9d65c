"""The folder that docker builds from: the Dockerfile and what it copies, nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from runner.data.stacks import CATALOGUE, locks_of
from runner.data.support import load_hardware
from runner.files import write_atomic
from runner.images.render import image_record, record_path, render
from runner.images.request import Request

_COPIED = (
    "runner/entry",
    "runner/inside/capture_env.py",
    "runner/inside/verify_image.py",
    "Dockerfiles/files",
)


def dockerfile(request: Request) -> str:
    """The Dockerfile of this image."""
    return render(request.stack, request.variant, locks_of(request.stack), CATALOGUE)


def write_context(request: Request, folder: Path) -> None:
    """Fill an empty folder."""
    project = CATALOGUE.parent
    for name in _COPIED:
        source, target = project / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    locks = locks_of(request.stack)
    (folder / "Dockerfiles" / "locks").mkdir()
    for name, text in locks.items():
        (folder / "Dockerfiles" / "locks" / name).write_text(text, encoding="utf-8")
    hardware = {h.generation: h for h in load_hardware()}.get(request.variant.generation)
    record = folder / record_path(request.stack, request.variant)
    record.parent.mkdir(exist_ok=True)
    record.write_text(image_record(request.stack, request.variant, hardware, locks), encoding="utf-8")
    write_atomic(folder / "Dockerfile", dockerfile(request), durable=False)


def builder_commit() -> str:
    """The commit of this checkout, with `-dirty` when it was changed; `unknown` outside of git."""
    done = subprocess.run(
        ["git", "-C", str(CATALOGUE), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() if done.returncode == 0 else "unknown"
