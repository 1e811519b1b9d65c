"""What the files of a local model say of its size, read from the heads of its weights alone."""

from __future__ import annotations

import json
import math
import os
import struct
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

from runner.core.fit import ModelFacts, Space, fit_findings
from runner.core.job import Job
from runner.errors import Finding

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
_COPIED = (".json", ".jinja", ".txt", ".model", ".tiktoken", ".py")
_LONGEST_HEAD = 64 << 20
_BITS = {"F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F8": 8, "I8": 8, "U8": 8, "F4": 4}
_DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2}


def local_fit(job: Job, base: Path, home: Path, modelscope: Path, huggingface: Path) -> list[Finding]:
    """A warning when what the job writes of models that are on this machine will not fit on its disks.

    `base` is the folder of the job file; the other two are the hubs' caches.
    """

    def model(name: str) -> ModelFacts | None:
        folder = model_folder(name, base, modelscope, huggingface)
        return model_facts(folder) if folder else None

    def space(output: str | None) -> Space | None:
        at = os.path.expanduser(output or "")  # noqa: PTH111 - a user that is not there is no error here
        return free_space(Path(at) if at.startswith("/") else home)

    return fit_findings(job, model, space)


def model_folder(name: str, base: Path, modelscope: Path, huggingface: Path) -> Path | None:
    """Where a model is on this machine: a folder, or a hub's cache of it; None when it is not here."""
    local = base / os.path.expanduser(name)  # noqa: PTH111 - a user that is not there is no error here
    if os.path.isdir(local):  # noqa: PTH112 - nor is a name too long for a file
        return local
    if name.startswith(("/", ".", "~")) or name.count("/") != 1:
        return None
    name = name.partition("::")[2] or name
    snapshots = huggingface / "hub" / f"models--{name.replace('/', '--')}" / "snapshots"
    cached = [modelscope / "models" / n for n in (name.replace(".", "___"), name)]
    if snapshots.is_dir():
        cached += sorted(snapshots.iterdir())
    return next((p for p in cached if (p / "config.json").is_file()), None)


@lru_cache(maxsize=64)
def model_facts(folder: Path) -> ModelFacts | None:
    """Sizes, parameters and the shapes of matrices; None when there are no weights to be read."""
    try:
        sizes = {e.name: e.stat().st_size for e in os.scandir(folder) if e.is_file()}
    except OSError:
        return None
    heads = [h for n in sorted(sizes) if n.endswith(".safetensors") for h in _tensors(folder / n)]
    tensors = dict(heads)
    weights = sum(s for n, s in sizes.items() if n.endswith(".safetensors" if tensors else _WEIGHTS))
    others = sum(s for n, s in sizes.items() if n.endswith(_COPIED))
    if not weights:
        return None
    if not tensors:
        width = _width_in_config(folder)
        return ModelFacts(weights, others, weights // width, width)
    counts: Counter[int] = Counter()
    for dtype, shape in tensors.values():
        counts[max(1, _bits(dtype) // 8)] += math.prod(shape)
    matrices = tuple(
        (name.removesuffix(".weight"), shape[0], shape[1])
        for name, (_, shape) in sorted(tensors.items())
        if name.endswith(".weight") and len(shape) == 2
    )
    return ModelFacts(weights, others, sum(counts.values()), counts.most_common(1)[0][0], matrices)


def free_space(folder: Path) -> Space | None:
    """The file system on which a folder is, or would be; None when it cannot be asked."""
    for here in (folder, *folder.parents):
        try:
            space, device = os.statvfs(here), here.stat().st_dev
        except OSError:
            continue
        return Space(device, str(here), space.f_bavail * space.f_frsize)
    return None


def _tensors(path: Path) -> list[tuple[str, tuple[str, list[int]]]]:
    """Name, type and shape of each tensor, by the head of a safetensors file; nothing when it is torn."""
    try:
        with path.open("rb") as f:
            (length,) = struct.unpack("<Q", f.read(8))
            head: dict[str, Any] = json.loads(f.read(length)) if length <= _LONGEST_HEAD else {}
        return [
            (name, (str(t["dtype"]), [int(n) for n in t["shape"]]))
            for name, t in head.items()
            if name != "__metadata__"
        ]
    except (OSError, ValueError, struct.error, KeyError, TypeError, AttributeError):
        return []


def _bits(dtype: str) -> int:
    return next((bits for start, bits in _BITS.items() if dtype.startswith(start)), 16)


def _width_in_config(folder: Path) -> int:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return _DTYPES.get(str(config.get("torch_dtype") or config.get("dtype")), 2)
    except (OSError, ValueError, AttributeError):
        return 2
