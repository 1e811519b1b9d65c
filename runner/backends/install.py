"""Installs a stack's pinned packages into a virtual environment, and says plainly why it cannot."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runner.backends.venv import MARK, find_stack, stack_folder, write_mark
from runner.core.lockfile import Lock, read_lock, write_lock
from runner.core.stack import Stack
from runner.errors import HostError
from runner.files import read_json

_NEEDED_BYTES = 4 << 30
_CUDA_GB = 7  # measured: 4.6 GB of nvidia-*, 0.6 GB of triton and 1.7 GB of torch, installed
_NO_NETWORK = re.compile(
    r"NewConnectionError|Name or service not known|name resolution|Network is unreachable|timed out|"
    r"ProxyError|from versions: none"
)
_STEPS = ("Downloading", "Installing", "Building")
_OTHER_HOME = "set RUNNER_HOME to a folder that you may write to"
Say = Callable[[str], None]


def install_stack(home: Path, stack: Stack, lock: Path, environ: Mapping[str, str], say: Say) -> None:
    """Make the stack's environment, unless it is there with exactly these pins."""
    digest = hashlib.sha256(lock.read_bytes() + stack.model_dump_json().encode()).hexdigest()[:12]
    folder = stack_folder(home, stack.stack)
    with _alone(folder, say):
        mark = read_json(folder / MARK)
        if not (mark and mark.get("digest") == digest and find_stack(home, stack.stack)):
            _check_machine(folder)
            (folder / MARK).unlink(missing_ok=True)
            _Installer(folder / "venv", environ, say).install(stack, lock)
            write_mark(home, stack, folder / "venv", digest)
    say(f"stack {stack.stack} is installed in {folder}")


@contextmanager
def _alone(folder: Path, say: Say) -> Iterator[None]:
    """One installation of a stack at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as e:
        raise HostError(f"cannot use {folder}: {e.strerror}", hint=_OTHER_HOME) from e
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another installation of this stack to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_machine(folder: Path) -> None:
    if not (3, 10) <= sys.version_info[:2] <= (3, 12):
        have = f"{sys.version_info[0]}.{sys.version_info[1]}"
        message = f"the stack needs Python 3.10 to 3.12, this is {have}"
        raise HostError(message, hint="run `make setup PYTHON=python3.11`")
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        message = f"{folder} has {free / 1e9:.1f} GB free, installing takes {_NEEDED_BYTES / 1e9:.1f} GB"
        raise HostError(message, hint="free some, or set RUNNER_HOME to a folder on a larger disk")


class _Installer:
    """One virtual environment, and the pip in it."""

    def __init__(self, root: Path, environ: Mapping[str, str], say: Say) -> None:
        self._root = root
        self._environ = dict(environ)
        self._say = say

    def install(self, stack: Stack, lock: Path) -> None:
        """From nothing to all pinned packages."""
        shutil.rmtree(self._root, ignore_errors=True)
        self._say(f"[1/3] a virtual environment in {self._root}")
        self._run([sys.executable, "-m", "venv", str(self._root)])
        torch = str(stack.version("torch")).partition("+")[0]
        self._say(f"[2/3] torch {torch} for the CPU")
        self._torch(torch, stack.indexes["pytorch"].url)
        pinned = read_lock(lock.read_text(encoding="utf-8"), lock.name)
        layers = {name: packages for name, packages in pinned.layers.items() if name != "torch"}
        self._say(f"[3/3] ms-swift {stack.version('ms-swift')} and {len(pinned.packages)} pinned packages"
                  " (2 to 4 minutes)")  # fmt: skip
        wanted = self._root / "requirements.txt"
        wanted.write_text(write_lock(Lock(layers), []), encoding="utf-8")
        self._pip(["--require-hashes", "--no-deps", "-r", str(wanted)])

    def _torch(self, version: str, cpu_index: str) -> None:
        """The CPU build from pip's own sources or the PyTorch CPU index, else PyPI's build, said aloud."""
        wanted = f"torch=={version}+cpu"
        if self._has(wanted, []):
            return self._pip([wanted])
        self._say(f"      no {wanted} in pip's own sources; asking {cpu_index}")
        index = ["--extra-index-url", cpu_index]
        if self._has(wanted, index):
            return self._pip([wanted, *index])
        here = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {os.uname().machine}"
        self._say(
            f"      no CPU build for {here} can be reached; PyPI's torch {version} may be a CUDA build:"
        )
        self._say(f"      up to {_CUDA_GB} GB on disk. Ctrl-C stops; {wanted} in PIP_FIND_LINKS avoids it.")
        return self._pip([f"torch=={version}"])

    def _has(self, requirement: str, more: list[str]) -> bool:
        pip = [str(self._root / "bin" / "python"), "-m", "pip", "install", "-q", "--dry-run", "--no-deps"]
        argv = [*pip, "--retries", "1", "--timeout", "15", requirement, *more]
        return subprocess.run(argv, env=self._environ, capture_output=True, check=False).returncode == 0

    def _pip(self, args: list[str]) -> None:
        python = str(self._root / "bin" / "python")
        self._run([python, "-m", "pip", "install", "--progress-bar", "off", *args])

    def _run(self, argv: list[str]) -> None:
        tail: list[str] = []
        with subprocess.Popen(
            argv,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                tail = [*tail[-40:], line.rstrip()]
                if line.strip().startswith(_STEPS):
                    self._say("      " + line.strip()[:100])
        if process.returncode:
            raise _why(argv, "\n".join(tail))


def _why(argv: list[str], text: str) -> HostError:
    """What stopped pip or venv, with the way out."""
    if "ensurepip is not" in text or "No module named venv" in text:
        major, minor = sys.version_info[:2]
        return HostError("this Python has no venv module", hint=f"apt-get install python{major}.{minor}-venv")
    if "No space left" in text:
        return HostError(
            "the disk is full", hint="free some, or set RUNNER_HOME to a folder on a larger disk"
        )
    if _NO_NETWORK.search(text):
        hint = "check the network, or set PIP_INDEX_URL or PIP_FIND_LINKS to a mirror"
        return HostError("the package index cannot be reached", hint=hint)
    hint = "the lines above are pip's own; a second try starts afresh, with what pip keeps in its cache"
    return HostError(f"`{' '.join(argv[-4:])}` failed:\n{text}", hint=hint)
