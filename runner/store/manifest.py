"""Writes the manifest of a run: what is known at submit, and the hashes of what went in and came out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from runner.core.manifest import (
    SCHEMA,
    Asked,
    begun,
    changed_inputs,
    final_metrics,
    grouped_inputs,
    manifest_text,
    sealed,
)
from runner.core.plan import Plan
from runner.errors import NoSuchRunError
from runner.files import read_json, write_atomic
from runner.store.db import Run, Step, Store
from runner.store.folders import RunFolder
from runner.store.hashes import Entry, Hashes, entries, entry, same
from runner.store.hostfacts import host_facts
from runner.store.installed import installed
from runner.store.metrics import read_metrics
from runner.store.snapshot import GitState, git_state
from runner.store.usage import disk_use

MANIFEST = "manifest.json"
PATCH = "snapshot.patch"
_FILES_AT_SUBMIT = 1_000  # of one input; looking at more would be felt
_FILES = 20_000
_ATTEMPT = ("n", "intent", "reason", "code", "signal", "message", "placed", "started", "ended")
_STEP = ("name", "kind", "state", "reason", "code", "signal", "message", "started", "ended")


def begin_manifest(folder: RunFolder, asked: Asked, source: Path, linked: Sequence[str] | None) -> None:
    """Write what is known of a run at submit; `linked` are the files of its snapshot that are links.

    The inputs are not read. Without a snapshot `linked` is None, and steps run in `source`.
    """
    git = _git_of(source)
    facts: Entry = {"source": str(source), "copied": linked is not None, "git": git.facts if git else None}
    facts["linked"] = [_link(folder, name) for name in linked or ()]
    if git and git.patch:
        (folder.path / PATCH).write_bytes(git.patch)
        facts["git"] = {**git.facts, "patch": PATCH}
    where = source if linked is None else folder.snapshot
    inputs = _inputs(asked.plan, where) if asked.plan else []
    whole = replace(asked, snapshot=facts, host=host_facts(), submitted=round(time.time(), 3))
    write_atomic(folder.path / MANIFEST, manifest_text(begun(whole, inputs)), durable=False)


def seal_manifest(store: Store, run: int, environment: Path | None) -> int:
    """Complete the manifest of a run that has ended; the bytes that its folder takes on the disk.

    Odd, unreadable and vanished files are named with the reason why they have no hash.
    """
    folder = store.folder(run)
    try:
        row = store.run(run)
    except NoSuchRunError:
        return 0
    if not folder.path.is_dir():
        return 0
    manifest = read_json(folder.path / MANIFEST) or {}
    if manifest.get("schema") != SCHEMA:
        manifest = _rebuilt(folder, row)
    known = Hashes(store.home / "hashes.json")
    steps = store.steps(run)
    inputs = [_hash_input(i, known) for i in manifest.get("inputs", [])]
    end = {
        "snapshot": _hash_linked(folder, manifest.get("snapshot"), known),
        "inputs": inputs,
        "changed": changed_inputs(inputs),
        "installed": installed(environment, known) if environment else None,
        "environment": str(environment) if environment else None,
        **_ended(store, folder, row),
        "metrics": {s.name: final_metrics(r) for s in steps if (r := read_metrics(folder, s))},
        "artifacts": [a for step in steps for a in _artifacts(folder, row, step, known)],
        "sealed": round(time.time(), 3),
    }
    known.save()
    if folder.path.is_dir():  # `runner rm` may have been quicker
        write_atomic(folder.path / MANIFEST, manifest_text(sealed(manifest, end)))
    return disk_use(folder.path)


def _git_of(source: Path) -> GitState | None:
    """Of a stored run's snapshot what was found when it was made; else of the folder itself."""
    if source.name != "snapshot" or not (source.parent / MANIFEST).is_file():
        return git_state(source)
    facts = ((read_json(source.parent / MANIFEST) or {}).get("snapshot") or {}).get("git")
    patch = source.parent / PATCH
    return GitState(dict(facts), patch.read_bytes() if patch.is_file() else b"") if facts else None


def _link(folder: RunFolder, name: str) -> Entry:
    path = folder.snapshot / name
    target = os.readlink(path) if path.is_symlink() else None  # noqa: PTH115 - as text
    return {**entry(path, name, follow=True), "target": target}


def _inputs(plan: Plan, where: Path) -> list[Entry]:
    found: list[Entry] = []
    for named, uses in grouped_inputs(plan):
        at = os.path.join(where, os.path.expanduser(named.path))  # noqa: PTH111, PTH118 - no user, no error
        if os.path.exists(at) or named.is_path:  # noqa: PTH110 - a name may be too long for a file
            files = entries(Path(at), _FILES_AT_SUBMIT, follow=True)
            found.append({"named": uses, "at": str(Path(at)), "files": files})
        elif named.id:
            found.append({"named": uses, "hub": named.hub, "id": named.id, "revision": named.revision})
    return found


def _hash_input(given: Entry, known: Hashes) -> Entry:
    """An input as it is now, each file with its hash, and whether it is still the one of the submit."""
    if "at" not in given:
        return given
    at = Path(given["at"])
    before = {f["path"]: f for f in given["files"]}
    files = []
    for now in entries(at, _FILES, follow=True):
        was = before.pop(now["path"], None)
        if now["path"] == "...":
            files.append(now)
            continue
        new = was is None and "..." not in before
        changed = new or (was is not None and (was.get("changed") or not same(was, now)))
        hashed = known.hashed(at if now["path"] == "." else at / now["path"], now)
        files.append({**hashed, "changed": True} if changed else hashed)
    files += [{"path": p, "error": "is gone", "changed": True} for p in before if p != "..."]
    return {**given, "files": files}


def _hash_linked(folder: RunFolder, snapshot: Any, known: Hashes) -> Any:
    if not isinstance(snapshot, dict):
        return snapshot
    linked = []
    for was in snapshot.get("linked", []):
        now = _link(folder, was["path"])
        changed = {"changed": True} if was.get("changed") or not same(was, now) else {}
        linked.append({**known.hashed(folder.snapshot / was["path"], now), **changed})
    return {**snapshot, "linked": linked}


def _ended(store: Store, folder: RunFolder, run: Run) -> dict[str, Any]:
    attempts = [asdict(a) for a in store.attempts(run.id)]
    steps = []
    for step in store.steps(run.id):
        tries = [{k: a[k] for k in _ATTEMPT} for a in attempts if a["step"] == step.name]
        outputs = {name: _relative(folder, value) for name, value in step.outputs.items()}
        said = {k: v for k, v in asdict(step).items() if k in _STEP}
        steps.append({**said, "outputs": outputs, "attempts": tries})
    return {"state": run.state, "ended": run.ended, "steps": steps}


def _artifacts(folder: RunFolder, run: Run, step: Step, known: Hashes) -> Iterator[Entry]:
    """What a step made: the files of its output folder, and those that an output outside of the run names."""
    output = folder.output(step.name)
    for found in entries(output, _FILES, follow=False) if output.is_dir() else ():
        path = output / found["path"]
        yield {**known.hashed(path, found), "path": _relative(folder, str(path))}
    outside = {v for v in step.outputs.values() if v.startswith("/") and _relative(folder, v) == v}
    for place in sorted(outside):
        for found in entries(Path(place), _FILES, follow=True):
            path = Path(place) / found["path"]
            if step.kind == "download" or found.get("mtime", 0) >= run.created:
                yield {**known.hashed(path, found), "path": str(path)}


def _relative(folder: RunFolder, value: str) -> str:
    return value.removeprefix(f"{folder.path}/")


def _rebuilt(folder: RunFolder, run: Run) -> dict[str, Any]:
    """The manifest of a run that was submitted without one: what its folder tells."""
    try:
        spec = folder.spec.read_text(encoding="utf-8", errors="replace")
    except OSError:
        spec = ""
    try:
        plan = Plan.model_validate_json(folder.plan.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        plan = None
    asked = Asked(name=run.name, file=run.file, spec=spec, plan=plan, point=run.point, submitted=run.created)
    return begun(asked, _inputs(plan, folder.snapshot) if plan else [])
