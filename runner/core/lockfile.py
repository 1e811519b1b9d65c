"""A lock: every package of a stack at one version with its hashes, in the layers of the image."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from runner.core.stack import Stack
from runner.errors import UnreachableError

ARCHES = {"x86": "x86_64", "arm": "aarch64"}  # as people say it -> as machines do
TORCH = ("torch", "torchvision", "torchaudio", "torch-npu")
ALONE = ("vllm", "vllm-ascend", "triton-ascend", "ms-swift")  # each has a layer of its own
BUILD = (
    "setuptools",
    "wheel",
    "setuptools-scm",
    "packaging",
    "cmake",
    "ninja",
    "pybind11",
    "jinja2",
    "markupsafe",
)
UNLOCKED = "unlocked: not reachable when locked"
_ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)(?:\s*;\s*([^\\#]+?))?\s*(?:\\|#|$)")
_LAYER = re.compile(r"^# layer: (\S+)")


@dataclass(frozen=True)
class Locked:
    """One package; without hashes it could not be reached when the lock was made."""

    name: str
    version: str
    hashes: tuple[str, ...] = ()
    marker: str = ""
    via: tuple[str, ...] = ()
    index: str | None = None


@dataclass(frozen=True)
class Lock:
    """All packages of a stack for one architecture."""

    layers: Mapping[str, tuple[Locked, ...]] = field(default_factory=dict)

    @property
    def packages(self) -> list[Locked]:
        """All packages; one name more than once when its version depends on the Python."""
        return [p for some in self.layers.values() for p in some]

    @property
    def unlocked(self) -> list[Locked]:
        """The packages without a hash."""
        return [p for p in self.packages if not p.hashes]


def canonical(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_entries(text: str) -> list[Locked]:
    """The packages of a requirements file as uv writes it, with what asks for each."""
    found: list[Locked] = []
    for line in text.splitlines():
        stripped = line.strip()
        if m := _ENTRY.match(line):
            found.append(Locked(m[1], m[2], marker=(m[3] or "").strip()))
        elif found and stripped.startswith("--hash="):
            last = found[-1]
            found[-1] = replace(last, hashes=(*last.hashes, stripped.removeprefix("--hash=").rstrip(" \\")))
        elif found and stripped.startswith("# via"):
            found[-1] = replace(found[-1], via=tuple(w for w in [stripped[5:].strip()] if w))
        elif found and stripped.startswith("#") and line.startswith("    #"):
            found[-1] = replace(found[-1], via=(*found[-1].via, stripped[1:].strip()))
    return found


def layered(entries: Iterable[Locked], stack: Stack) -> Lock:
    """Each package in the layer that changes as often as it does, components in layers of their own."""
    packages = sorted(entries, key=lambda p: (canonical(p.name), p.marker))
    layers: dict[str, list[Locked]] = {"build": [], "torch": [], "packages": []}
    layers |= {f"{component}-packages": [] for component in stack.components} | {n: [] for n in ALONE}
    asked = _asked(packages)
    owners, build = _owners(asked, stack), _reach(set(BUILD) & set(asked), asked)
    for package in packages:
        name = canonical(package.name)
        alone = name if name in ALONE else "torch" if name in TORCH else "build" if name in build else None
        layers[alone or owners.get(name, "packages")].append(package)
    return Lock({layer: tuple(some) for layer, some in layers.items() if some})


def write_lock(lock: Lock, head: Sequence[str]) -> str:
    """The lock as a file: `# layer:` lines part it, so that an image can install each layer for itself."""
    lines = [f"# {line}" for line in head]
    for layer, packages in lock.layers.items():
        lines += ["", f"# layer: {layer}"]
        for p in packages:
            marker = f" ; {p.marker}" if p.marker else ""
            if p.hashes:
                hashes = " \\\n    ".join(f"--hash={h}" for h in sorted(p.hashes))
                lines.append(f"{p.name}=={p.version}{marker} \\\n    {hashes}")
            else:
                where = f"; index {p.index}" if p.index else ""
                lines.append(f"{p.name}=={p.version}{marker}  # {UNLOCKED}{where}")
    return "\n".join(lines) + "\n"


def read_lock(text: str, name: str) -> Lock:
    """What `write_lock` wrote; UnreachableError when it is none."""
    layers: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if m := _LAYER.match(line):
            current = layers.setdefault(m[1], [])
        elif current is not None:
            current.append(line)
    if not layers:
        raise UnreachableError(f"{name} is no lock: it has no '# layer:' line")
    return Lock({layer: tuple(_entries(lines)) for layer, lines in layers.items()})


def _entries(lines: Sequence[str]) -> list[Locked]:
    where = {m[1]: m[2] for line in lines if (m := re.match(r"([^=\s]+)==.*; index (\S+)$", line))}
    return [replace(p, index=where.get(p.name)) for p in read_entries("\n".join(lines))]


def _asked(packages: Iterable[Locked]) -> dict[str, list[str]]:
    """Each package with those that it asks for."""
    asked: dict[str, list[str]] = {canonical(p.name): [] for p in packages}
    for package in packages:
        for parent in package.via:
            asked.setdefault(canonical(parent.split("[")[0]), []).append(canonical(package.name))
    return asked


def _owners(asked: Mapping[str, Sequence[str]], stack: Stack) -> dict[str, str]:
    """Which component a package belongs to: the one that all who ask for it lead to, if there is one."""
    roots = {canonical(n): c for c, names in stack.components.items() for n in names}
    free = {canonical(n) for n, pin in stack.packages.items() if canonical(n) not in roots and not pin.git}
    reached = _reach(free & set(asked), asked)
    owners: dict[str, str] = {}
    for component in stack.components:
        own = {n for n, c in roots.items() if c == component and n in asked}
        for name in _reach(own, asked) - reached:
            owners[name] = f"{component}-packages" if name not in owners else "packages"
    return owners


def _reach(roots: Iterable[str], asked: Mapping[str, Sequence[str]]) -> set[str]:
    seen: set[str] = set()
    left = list(roots)
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += asked.get(name, [])
    return seen
