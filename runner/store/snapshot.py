"""The job's folder as it was at submit: a copy of it, and its commit and patch when it is a git tree."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from runner.core.secrecy import without_credentials
from runner.errors import UsageError

SNAPSHOT_FILES = 5_000
COPIED_BYTES = 16 << 20  # a larger file is linked, not copied
PATCH_BYTES = 16 << 20
_GIT_S = 5.0
_LEFT_OUT = {
    ".git",
    ".hg",
    ".venv",
    "venv",
    "__pycache__",
    "node_modules",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
}
_GIT = (  # without the programs that a repository may name: a monitor, hooks, a pager
    "git", "--no-pager", "--no-optional-locks",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
)  # fmt: skip
_GIT_ENV = {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


@dataclass(frozen=True)
class GitState:
    """The commit of a work tree, and what differs from it."""

    facts: dict[str, Any]
    patch: bytes = field(default=b"", repr=False)


def snapshot(source: Path, target: Path) -> list[str]:
    """Copy the job's folder; files over 16 MiB are linked. Returns the linked ones, relative."""
    linked = []
    count = 0
    home = target.resolve().parents[2]
    state = {home, home / "runs", home / "stacks"}  # when the job file lies beside or above the state folder
    for folder, names, files in os.walk(source):
        here = Path(folder)
        names[:] = sorted(n for n in names if n not in _LEFT_OUT and (here / n).resolve() not in state)
        count += len(files)
        if count > SNAPSHOT_FILES:
            raise UsageError(
                f"the job file's folder {source} has more than {SNAPSHOT_FILES} files, too many for a copy",
                hint="put the job file into a folder of its own, or say `snapshot: false` in it",
            )
        goal = target / here.relative_to(source)
        goal.mkdir(parents=True, exist_ok=True)
        for name in [*files, *[n for n in names if (here / n).is_symlink()]]:
            if _copy(here / name, goal / name):
                linked.append(str((here / name).relative_to(source)))
    return sorted(linked)


def _copy(source: Path, goal: Path) -> bool:
    if not source.exists() or not (source.is_file() or source.is_symlink()):
        return False
    if source.is_symlink() or source.stat().st_size > COPIED_BYTES:
        goal.symlink_to(source.resolve())
        return True
    with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile
        shutil.copy2(source, goal)
    return False


@lru_cache(maxsize=8)
def git_state(folder: Path) -> GitState | None:
    """The state of the git tree that a folder is in, asked once for a process; None when it is in none."""
    root = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    if root is None:
        return None
    until = time.monotonic() + _GIT_S
    facts: dict[str, Any] = {"root": str(root), "commit": None, "branch": None, "dirty": None, "remote": None}
    try:
        status = _git(root, until, "status", "--porcelain=v2", "--branch", "--untracked-files=no", "-z")
        facts |= _status(status.decode("utf-8", "replace").split("\0"))
        remotes = _git(root, until, "config", "--get-regexp", r"^remote\..*\.url$", codes=(0, 1))
        facts["remote"] = _remote(remotes.decode("utf-8", "replace"))
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--binary", "--ignore-submodules=dirty")
        patch = _git(root, until, "diff", *options, "HEAD") if facts["dirty"] and facts["commit"] else b""
    except (OSError, ValueError) as e:
        return GitState({**facts, "error": str(e)})
    return GitState(facts, patch)


def _status(parts: list[str]) -> dict[str, Any]:
    heads = dict(p[2:].split(" ", 1) for p in parts if p.startswith("# branch.") and " " in p[2:])
    commit = heads.get("branch.oid")
    return {
        "commit": None if commit == "(initial)" else commit,
        "branch": heads.get("branch.head"),
        "dirty": any(p and not p.startswith("# ") for p in parts),
    }


def _remote(text: str) -> str | None:
    """The address of `origin`, else of the first one there is."""
    found = [line.split(" ", 1) for line in text.splitlines() if " " in line]
    urls = {name.removeprefix("remote.").removesuffix(".url"): url for name, url in found}
    return without_credentials(urls.get("origin") or next(iter(urls.values()), "")) or None


def _git(root: Path, until: float, *words: str, codes: tuple[int, ...] = (0,)) -> bytes:
    """What git prints; OSError when it is not there, ValueError when it fails, prints too much or hangs."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    with subprocess.Popen(
        [*_GIT, *words], cwd=root, env={**clean, **_GIT_ENV}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as git:  # fmt: skip
        try:
            return _read(git, until, words[0], codes)
        finally:
            git.kill()


def _read(git: subprocess.Popen[bytes], until: float, word: str, codes: tuple[int, ...]) -> bytes:
    assert git.stdout is not None
    chunks: list[bytes] = []
    size = 0
    while size <= PATCH_BYTES:
        ready, _, _ = select.select([git.stdout], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise ValueError(f"git {word} took longer than {_GIT_S:.0f} s")
        chunk = os.read(git.stdout.fileno(), 1 << 16)
        if not chunk:
            code = git.wait()
            if code not in codes:
                raise ValueError(f"git {word} ended with exit code {code}")
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
    raise ValueError(f"git {word} printed more than {PATCH_BYTES >> 20} MiB")
