"""A stack as a virtual environment of this machine: install it once, find it again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from runner.core.stack import Stack
from runner.errors import HostError
from runner.files import read_json, write_atomic

MARK = "stack.json"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_NEEDED_BYTES = 4 << 30
_CUDA_GB = 7  # measured: 4.6 GB of nvidia-*, 0.6 GB of triton and 1.7 GB of torch, installed
_NO_NETWORK = re.compile(
    r"NewConnectionError|Name or service not known|name resolution|Network is unreachable|timed out|"
    r"ProxyError|from versions: none"
)
Say = Callable[[str], None]


def stack_folder(home: Path, name: str) -> Path:
    """Where the stack's environment is, or would be."""
    return home / "stacks" / name


def find_stack(home: Path, name: str) -> Path | None:
    """The root of an installed environment of this stack; None when it is not there or not whole."""
    mark = read_json(stack_folder(home, name) / MARK)
    root = Path(mark["root"]) if mark else None
    return root if root and (root / "bin" / "python").exists() else None


def adopt_stack(home: Path, stack: Stack, root: Path) -> None:
    """Use an environment that is already there (conda, a venv in an image) as this stack."""
    if not (root / "bin" / "python").exists():
        raise HostError(f"{root} is no Python environment: it has no bin/python")
    _mark(home, stack, root, "")


def install_stack(home: Path, stack: Stack, lock: Path, say: Say) -> Path:
    """Make the stack's environment, unless it is there with exactly these pins; its root."""
    digest = hashlib.sha256(lock.read_bytes() + stack.model_dump_json().encode()).hexdigest()[:12]
    folder = stack_folder(home, stack.stack)
    mark = read_json(folder / MARK)
    if mark and mark.get("digest") == digest and find_stack(home, stack.stack):
        say(f"stack {stack.stack} is installed in {folder}")
        return Path(mark["root"])
    _check_machine(folder)
    root = folder / "venv"
    (folder / MARK).unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    say(f"[1/3] a virtual environment in {root}")
    _run([sys.executable, "-m", "venv", str(root)], say)
    say(f"[2/3] torch {stack.version('torch')} for the CPU")
    _install_torch(root, str(stack.version("torch")), say)
    packages = f"ms-swift {stack.version('ms-swift')} and {_count(lock)} pinned packages"
    say(f"[3/3] {packages} (about 100 s and 2 GB)")
    _pip(root, ["--require-hashes", "--no-deps", "-r", str(lock)], say)
    _mark(home, stack, root, digest)
    say(f"stack {stack.stack} is installed in {folder}")
    return root


def _mark(home: Path, stack: Stack, root: Path, digest: str) -> None:
    mark = {"stack": stack.stack, "digest": digest, "root": str(root.absolute())}
    write_atomic(stack_folder(home, stack.stack) / MARK, json.dumps(mark) + "\n")


def _check_machine(folder: Path) -> None:
    if not (3, 10) <= sys.version_info[:2] <= (3, 12):
        have = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise HostError(
            f"the stack needs Python 3.10 to 3.12, this is {have}", hint="run `make setup PYTHON=python3.11`"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as e:
        raise HostError(
            f"cannot use {folder}: {e.strerror}", hint="set RUNNER_HOME to a folder that you may write to"
        ) from e
    if free < _NEEDED_BYTES:
        raise HostError(
            f"{folder} has {free / 1e9:.1f} GB free, installing takes {_NEEDED_BYTES / 1e9:.1f} GB",
            hint="free some, or set RUNNER_HOME to a folder on a larger disk",
        )


def _install_torch(root: Path, version: str, say: Say) -> None:
    """The CPU build from pip's own sources or the PyTorch CPU index, else PyPI's CUDA build, said aloud."""
    wanted = f"torch=={version}+cpu"
    if _available(root, wanted, []):
        return _pip(root, [wanted], say)
    say(f"      no {wanted} in pip's own sources; asking {CPU_INDEX}")
    index = ["--extra-index-url", CPU_INDEX]
    if _available(root, wanted, index):
        return _pip(root, [wanted, *index], say)
    say(f"      no CPU build for {_platform()} can be reached; PyPI's torch {version} may be a CUDA build:")
    say(f"      up to {_CUDA_GB} GB on disk. Ctrl-C stops; {wanted} in a folder of PIP_FIND_LINKS avoids it.")
    return _pip(root, [f"torch=={version}"], say)


def _platform() -> str:
    return f"Python {sys.version_info[0]}.{sys.version_info[1]} on {os.uname().machine}"


def _available(root: Path, requirement: str, more: list[str]) -> bool:
    pip = [str(root / "bin" / "python"), "-m", "pip", "install", "-q", "--dry-run", "--no-deps"]
    argv = [*pip, "--retries", "1", "--timeout", "15", requirement, *more]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def _pip(root: Path, args: list[str], say: Say) -> None:
    _run([str(root / "bin" / "python"), "-m", "pip", "install", "--progress-bar", "off", *args], say)


def _run(argv: list[str], say: Say) -> None:
    tail: list[str] = []
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tail = [*tail[-40:], line.rstrip()]
            if line.startswith(("Downloading", "  Downloading", "Installing", "  Building", "Building")):
                say("      " + line.strip()[:100])
    if process.returncode == 0:
        return
    text = "\n".join(tail)
    if "ensurepip is not" in text or "No module named venv" in text:
        major, minor = sys.version_info[:2]
        raise HostError("this Python has no venv module", hint=f"apt-get install python{major}.{minor}-venv")
    if "No space left" in text:
        raise HostError(
            "the disk is full", hint="free some space, or set RUNNER_HOME to a folder on a larger disk"
        )
    if _NO_NETWORK.search(text):
        raise HostError(
            "the package index cannot be reached",
            hint="check the network, or set PIP_INDEX_URL or PIP_FIND_LINKS to a mirror",
        )
    raise HostError(
        f"`{' '.join(argv[-4:])}` failed:\n{text}",
        hint="the lines above are pip's own; a second try goes on where this one stopped",
    )


def _count(lock: Path) -> int:
    return sum("==" in line for line in lock.read_text().splitlines())
