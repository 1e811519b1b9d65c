"""Looks into a step's folder for what it made: complete checkpoints, results, records."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from pathlib import Path

from runner.core.checkpoint import NAME, CheckpointFacts, incomplete_because
from runner.files import read_json


def checkpoint_facts(folder: Path) -> CheckpointFacts:
    """Everything that decides whether this checkpoint is complete."""
    files = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root) / name
            files[path.relative_to(folder).as_posix()] = path.stat().st_size if path.exists() else 0
    state = read_json(folder / "trainer_state.json") or {}
    step = state.get("global_step")
    best = state.get("best_model_checkpoint")
    args = read_json(folder / "args.json") or {}
    return CheckpointFacts(
        name=folder.name,
        files=files,
        global_step=step if isinstance(step, int) else None,
        torn=tuple(sorted(f for f in files if _torn(folder / f))),
        save_only_model=True in (args.get("save_only_model"), args.get("no_save_optim")),
        best=best if isinstance(best, str) else None,
    )


def complete_checkpoints(folder: Path, ranks: int = 1) -> list[Path]:
    """The complete checkpoints in a training's folder, oldest step first."""
    return [path for path, why in judged_checkpoints(folder, ranks) if why is None]


def judged_checkpoints(
    folder: Path, ranks: int = 1, *, to_resume: bool = False
) -> list[tuple[Path, str | None]]:
    """All checkpoints in step order, each with the reason why it is incomplete, or None."""
    if not folder.is_dir():
        return []
    found = [(int(m[1]), p) for p in folder.iterdir() if (m := NAME.match(p.name)) and p.is_dir()]
    return [
        (p, incomplete_because(checkpoint_facts(p), ranks, to_resume=to_resume)) for _, p in sorted(found)
    ]


def best_checkpoint(folder: Path, ranks: int = 1) -> Path | None:
    """The complete checkpoint that trainer_state.json calls the best; None when nothing was evaluated."""
    complete = complete_checkpoints(folder, ranks)
    for path in reversed(complete):
        best = checkpoint_facts(path).best
        if best:
            return next((p for p in complete if p.name == Path(best).name), None)
    return None


def _torn(path: Path) -> bool:
    if path.suffix == ".safetensors":
        return not _whole_safetensors(path)
    if path.suffix in (".pt", ".pth", ".bin"):
        return not zipfile.is_zipfile(path)
    return (path.suffix == ".distcp" or path.name == ".metadata") and path.stat().st_size == 0


def _whole_safetensors(path: Path) -> bool:
    try:
        with path.open("rb") as f:
            (length,) = struct.unpack("<Q", f.read(8))
            if length > 100 << 20:
                return False
            header = json.loads(f.read(length))
        end = max((t["data_offsets"][1] for n, t in header.items() if n != "__metadata__"), default=0)
    except (OSError, ValueError, struct.error, KeyError, TypeError, IndexError, AttributeError):
        return False
    return bool(path.stat().st_size == 8 + length + int(end))
