"""Whether what could not be locked can be had now: asked before the build, not an hour into it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from runner.core.lockfile import Lock
from runner.errors import Finding, Severity, UnreachableError
from runner.images.index import hashes_of
from runner.images.request import Request
from runner.images.wheelhouse import archive_name, checkouts

_HINT = "give --mirror, a --wheelhouse, or --allow-unlocked to build without it"


def out_of_reach(request: Request, lock: Lock) -> list[Finding]:
    """What is not locked and cannot be had now; warnings when that is allowed."""
    severity: Severity = "warning" if request.allow_unlocked else "error"
    return [Finding("unlocked", why, severity, hint=_HINT) for why in _why(request, lock)]


def git_settings(request: Request) -> list[str]:
    """git's options for the site's mirrors."""
    pairs = request.supply.git_mirrors.items()
    return [word for of, to in pairs for word in ("-c", f"url.{to}.insteadOf={of}")]


def commit_of(request: Request, url: str, ref: str) -> str:
    """The commit that a branch or tag is now; UnreachableError when it cannot be asked."""
    argv = ["git", *git_settings(request), "ls-remote", url, ref, f"refs/tags/{ref}^{{}}"]
    code, said = _ask(argv)
    lines = [line.split() for line in said.splitlines() if "\t" in line]
    if code or not lines:
        message = f"{url} cannot be asked for '{ref}'" if code else f"{url} has no branch or tag '{ref}'"
        raise UnreachableError(message, hint="give --mirror git.HOST=URL, or build the locked release")
    return lines[-1][0]


def _why(request: Request, lock: Lock) -> Iterator[str]:
    wheels = request.supply.wheelhouse
    left_out = {n for c in request.variant.without for n in request.stack.components[c]}
    for package in lock.unlocked:
        if package.name in {n.lower() for n in left_out}:
            continue
        what = f"{package.name} {package.version} is not locked and cannot be had now"
        if wheels:
            if not any(wheels.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl")):
                yield f"{what}: the wheelhouse has it not"
            continue
        index = request.stack.indexes[package.index] if package.index else None
        address = request.mirrors.indexes.get(package.index or "", index.url if index else "")
        try:
            if not hashes_of(address, package.name, package.version):
                yield f"{what}: index '{package.index}' has it not"
        except UnreachableError as e:
            yield f"{what}: {e.message}"
    for name, url, commit in checkouts(request.stack):
        if name in left_out or (name == "vllm-ascend" and not request.kernels):
            continue
        if wheels and (wheels / "git" / archive_name(name, commit)).exists():
            continue
        if _ask(["git", *git_settings(request), "ls-remote", "--exit-code", url, "HEAD"])[0]:
            yield f"{name} at {commit[:12]} is not locked and cannot be had now: {url} does not answer"


def _ask(argv: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=30, check=False, cwd=Path("/"),
            env={"GIT_TERMINAL_PROMPT": "0", **os.environ},
        )  # fmt: skip
    except (subprocess.TimeoutExpired, FileNotFoundError):
        return 124, ""
    return done.returncode, done.stdout
