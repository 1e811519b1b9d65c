"""Resolves a stack with uv: all packages, for one architecture, with hashes.

What no resolver can ask takes part as a stand-in: an empty wheel that declares what the real one does.
A bound that the stack breaks on purpose is changed in the one package that declares it, so every other
bound is kept, or the resolver says which is not.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from runner.core.lockfile import ARCHES, Lock, Locked, canonical, layered, read_entries, read_lock
from runner.core.stack import Pin, Stack
from runner.errors import Finding, HostError, SpecError, UnreachableError
from runner.images.index import PYPI, declared, hashes_of

_OLDEST_GLIBC = "manylinux_2_35"  # Ubuntu 22.04


def make_lock(stack: Stack, arch: str, *, preferred: Lock | None = None) -> Lock:
    """Resolve a stack for `x86` or `arm`, or for all when it is universal.

    SpecError when it has no solution or an override is stale, UnreachableError without an index.
    `preferred` holds the versions of another lock.
    """
    with tempfile.TemporaryDirectory(prefix="lock-") as scratch:
        folder = Path(scratch)
        pins = {name: chosen(pin, arch) for name, pin in stack.packages.items()}
        for name, pin in pins.items():
            if pin.index:
                _stand_in(folder, name, pin)
        (folder / "stack.in").write_text("\n".join(_requirements(pins, stack)) + "\n")
        (folder / "bounds.txt").write_text("\n".join(_bounds(stack, preferred)) + "\n")
        (folder / "uv.toml").write_text(_metadata(stack))
        text = _compile(folder, stack, arch)
    entries = [_reached(p, pins, stack) for p in read_entries(text)]
    return layered(entries, stack)


def check_lock(stack: Stack, arch: str, path: Path) -> list[str]:
    """What of a lock no longer resolves, a line each: versions and files that are gone, or uv's words."""
    if not path.exists():
        return [f"there is no lock; `python build_image.py lock {stack.stack}` makes it"]
    old = read_lock(path.read_text(encoding="utf-8"), path.name)
    try:
        resolved = make_lock(stack, arch, preferred=old)
    except SpecError as e:
        return [e.message]
    was, now = _by_version(old), _by_version(resolved)
    gone = [f"{package} is not asked for any more" for package in was if package not in now]
    gone += [f"{package} is asked for and not in the lock" for package in now if package not in was]
    for package, hashes in was.items():
        lost = hashes - now.get(package, hashes)
        if lost and now[package]:
            gone.append(f"{package}: {len(lost)} of its files are gone")
    return gone


def _by_version(lock: Lock) -> dict[str, set[str]]:
    return {f"{p.name} {p.version}": set(p.hashes) for p in lock.packages}


def chosen(pin: Pin, arch: str) -> Pin:
    """The pin as it is for this architecture."""
    if arch != "x86" or pin.x86 is None:
        return pin
    x86 = pin.x86
    return pin.model_copy(update={"version": x86.version, "index": x86.index, "requires": x86.requires})


def head_of(stack: Stack, arch: str) -> list[str]:
    """The first lines of a lock."""
    where = "x86_64 and aarch64, Python 3.10 to 3.12" if stack.resolve.universal else ARCHES[arch]
    python = "" if stack.resolve.universal else f", Python {stack.python}"
    newest = f", nothing newer than {stack.resolve.exclude_newer}" if stack.resolve.exclude_newer else ""
    return [
        f"Stack {stack.stack} for {where}{python}{newest}.",
        f"Made by `python build_image.py lock {stack.stack}`.",
    ]


def _requirements(pins: Mapping[str, Pin], stack: Stack) -> list[str]:
    wanted = [f"{name}=={pin.version}" for name, pin in pins.items() if not pin.git]
    broken = {(o.package, o.declares): o.instead for o in stack.resolve.overrides}
    for name, pin in pins.items():
        for need in pin.requires if pin.git else ():
            kept = broken.get((name, need), need)
            wanted += [kept] if kept else []
    return wanted


def _bounds(stack: Stack, preferred: Lock | None) -> list[str]:
    held = (
        [f"{p.name}=={p.version}{p.marker and ' ; ' + p.marker}" for p in preferred.packages]
        if preferred
        else []
    )
    return [c.pin for c in stack.resolve.constraints] + held


def _metadata(stack: Stack) -> str:
    """uv's settings: what the packages declare whose declarations are not taken as they are."""
    names = {canonical(o.package) for o in stack.resolve.overrides} | {"vllm"}
    lines: list[str] = []
    for name, pin in stack.packages.items():
        if canonical(name) in names and not pin.git:
            needs = _overridden(name, declared(PYPI, name, pin.version), stack)
            lines += ["[[dependency-metadata]]", f"name = {json.dumps(canonical(name))}"]
            lines += [f"version = {json.dumps(pin.version)}", f"requires-dist = {json.dumps(needs)}", ""]
    return "\n".join(lines)


def _overridden(name: str, needs: Sequence[str], stack: Stack) -> list[str]:
    kept = {_plain(n): n for n in needs}
    for o in stack.resolve.overrides:
        if canonical(o.package) == canonical(name):
            if _plain(o.declares) not in kept:
                message = f"{name} does not declare '{o.declares}': the override is stale"
                hint = "what it declares: " + ", ".join(n for n in needs if _name(n) == _name(o.declares))
                raise SpecError([Finding("stale-override", message, hint=hint, file=stack.stack)])
            del kept[_plain(o.declares)]
            if o.instead:
                kept[_plain(o.instead)] = o.instead
    return list(kept.values())


def _plain(requirement: str) -> str:
    """Without its marker, and spelled one way."""
    return re.sub(r"[\s()]", "", requirement.partition(";")[0]).lower().replace("_", "-")


def _name(requirement: str) -> str:
    return canonical(re.split(r"[\s\[<>=!~;(]", requirement, maxsplit=1)[0])


def _stand_in(folder: Path, name: str, pin: Pin) -> None:
    plain = canonical(name).replace("-", "_")
    needs = "".join(f"Requires-Dist: {r}\n" for r in pin.requires)
    info = f"{plain}-{pin.version}.dist-info"
    with zipfile.ZipFile(folder / f"{plain}-{pin.version}-py3-none-any.whl", "w") as wheel:
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {pin.version}\n{needs}"
        wheel.writestr(f"{info}/METADATA", head)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def _compile(folder: Path, stack: Stack, arch: str) -> str:
    argv = [_uv(), "pip", "compile", "stack.in", "--config-file", "uv.toml", "--find-links", str(folder)]
    argv += ["-c", "bounds.txt", "--generate-hashes", "--no-header", "--quiet"]
    if stack.resolve.universal:
        argv += ["--universal", "--python-version", "3.10"]
    else:
        argv += ["--python-version", stack.python, "--python-platform", f"{ARCHES[arch]}-{_OLDEST_GLIBC}"]
    if stack.resolve.exclude_newer:
        argv += ["--exclude-newer", stack.resolve.exclude_newer]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.strip()
    if re.search(r"[Ff]ailed to fetch|dns error|error sending request|timed out", said):
        raise UnreachableError(
            f"uv cannot reach the package index:\n{said}", hint="set UV_INDEX_URL to a mirror"
        )
    message = f"stack '{stack.stack}' has no solution for {ARCHES.get(arch, arch)}:\n{said}"
    hint = "change a pin, or write the broken declaration down under resolve.overrides, with a reason"
    raise SpecError([Finding("unsolvable", message, hint=hint, file=stack.stack)])


def _reached(entry: Locked, pins: Mapping[str, Pin], stack: Stack) -> Locked:
    """The real hashes of what a stand-in stood for, when its index can be asked."""
    pin = next((p for n, p in pins.items() if canonical(n) == canonical(entry.name) and p.index), None)
    if pin is None or pin.index is None:
        return entry
    try:
        hashes = hashes_of(stack.indexes[pin.index].url, entry.name, pin.version)
    except UnreachableError:
        hashes = ()
    return replace(entry, hashes=hashes, index=pin.index)


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise HostError("resolving a stack needs uv", hint="pip install 'ascend-runner[lock]'")
    return found
