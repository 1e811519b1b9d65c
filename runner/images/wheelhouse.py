"""A folder with every file that a stack is locked to, so that an image can be built without the internet."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.markers import Marker
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from runner.core.lockfile import ARCHES, Lock, Locked
from runner.core.stack import Stack
from runner.errors import UnreachableError
from runner.files import file_sha256
from runner.images.index import PYPI, Listed, files_of

SOURCES = ("vllm", "vllm-ascend")  # are built in the image
_NEWEST_GLIBC = 35
Say = Callable[[str], None]


def fill(stack: Stack, lock: Lock, arch: str, folder: Path, near: Sequence[Path], say: Say) -> list[str]:
    """Fetch what is not there yet, checked by hash; the names of what cannot be had.

    `near` are folders to look into for what has no hash, before its index is asked.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tags = _tags(stack.python, ARCHES[arch])
    wanted = [p for p in lock.packages if _applies(p.marker, stack.python, ARCHES[arch])]
    missing: list[str] = []

    def fetch(package: Locked) -> None:
        try:
            _fetch(package, stack, tags, folder, near, say)
        except (UnreachableError, OSError) as e:
            missing.append(f"{package.name}=={package.version}: {e}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fetch, wanted))
    for name, url, commit in checkouts(stack):
        missing += _archive(name, url, commit, folder / "git", say)
    return sorted(missing)


def checkouts(stack: Stack) -> list[tuple[str, str, str]]:
    """Name, address and commit of each repository that the stack is built from."""
    pins = stack.packages.items()
    own = [(name, pin.git, pin.commit) for name, pin in pins if pin.git and pin.commit]
    return [*own, *((name, pin.kernels.git, pin.kernels.commit) for name, pin in pins if pin.kernels)]


def archive_name(name: str, commit: str) -> str:
    """The file that holds one commit of a repository, submodules and all."""
    return f"{name}-{commit}.tar.gz"


def _fetch(
    package: Locked, stack: Stack, tags: Sequence[Tag], folder: Path, near: Sequence[Path], say: Say
) -> None:
    if not package.hashes:
        for place in near:
            for file in place.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl"):
                if _rank(file.name, tags) is not None:
                    shutil.copy2(file, folder / file.name)
                    return
    index = stack.indexes[package.index].url if package.index else PYPI
    known = {h.removeprefix("sha256:") for h in package.hashes}
    files = [f for f in files_of(index, package.name) if not known or f.sha256 in known]
    best = _best(package, files, tags)
    if best is None:
        raise UnreachableError(f"{index} has no file for this machine")
    target = folder / best.name
    if target.exists() and (not best.sha256 or file_sha256(target) == best.sha256):
        return
    say(f"  {best.name}")
    draft = target.with_name(f".{best.name}.part")
    with urllib.request.urlopen(best.url, timeout=300) as answer, draft.open("wb") as out:
        shutil.copyfileobj(answer, out)
    if best.sha256 and file_sha256(draft) != best.sha256:
        draft.unlink()
        raise UnreachableError(f"{best.name} does not have the locked hash")
    draft.replace(target)


def _best(package: Locked, files: Iterable[Listed], tags: Sequence[Tag]) -> Listed | None:
    of_version = [f for f in files if _is_version(f.name, package)]
    wheels = [(rank, f) for f in of_version if (rank := _rank(f.name, tags)) is not None]
    source = next((f for f in of_version if f.name.endswith((".tar.gz", ".zip"))), None)
    if package.name in SOURCES or not wheels:
        return source
    return min(wheels, key=lambda w: w[0])[1]


def _is_version(file: str, package: Locked) -> bool:
    version = re.escape(package.version).replace(r"\+", r"(\+|%2B)")
    return re.search(rf"-{version}(-|\.tar\.gz$|\.zip$)", file) is not None


def _rank(file: str, tags: Sequence[Tag]) -> int | None:
    try:
        own = parse_wheel_filename(file.replace("%2B", "+"))[3]
    except InvalidWheelFilename:
        return None
    return min((i for i, tag in enumerate(tags) if tag in own), default=None)


def _tags(python: str, machine: str) -> list[Tag]:
    major, minor = map(int, python.split("."))
    platforms = [f"manylinux_2_{n}_{machine}" for n in range(_NEWEST_GLIBC, 4, -1)]
    platforms += [f"manylinux2014_{machine}", f"manylinux2010_{machine}", f"manylinux1_{machine}"]
    platforms += [f"linux_{machine}"]
    return [
        *cpython_tags((major, minor), platforms=platforms),
        *compatible_tags((major, minor), f"cp{major}{minor}", platforms),
    ]


def _applies(marker: str, python: str, machine: str) -> bool:
    place = {"python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine}
    return not marker or Marker(marker).evaluate({**place, "sys_platform": "linux"})


def _archive(name: str, url: str, commit: str, folder: Path, say: Say) -> list[str]:
    target = folder / archive_name(name, commit)
    if target.exists():
        return []
    say(f"  {target.name}")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        tree = Path(scratch) / "tree"
        for argv in (
            ["git", "init", "-q", str(tree)],
            ["git", "-C", str(tree), "fetch", "-q", "--depth", "1", url, commit],
            ["git", "-C", str(tree), "checkout", "-q", "FETCH_HEAD"],
            ["git", "-C", str(tree), "submodule", "update", "-q", "--init", "--depth", "1", "--recursive"],
        ):
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            if done.returncode:
                return [f"{name}@{commit[:12]}: {done.stderr.strip().splitlines()[-1:] or ['git failed']}"]
        draft = Path(scratch) / "draft"
        with tarfile.open(draft, "w:gz") as archive:
            archive.add(tree, arcname=".", filter=lambda m: None if m.name.startswith("./.git") else m)
        draft.replace(target)
    return []
