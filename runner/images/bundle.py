"""A folder with images and their checksums, for hosts that reach no registry."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from runner.errors import HostError, UsageError
from runner.files import file_sha256, read_json, write_atomic
from runner.images.engine import Engine

INDEX = "images.json"
Say = Callable[[str], None]


def save_images(engine: Engine, images: Sequence[str], folder: Path, say: Say) -> list[dict[str, Any]]:
    """Write each image as an archive, then the index and SHA256SUMS; an archive is whole or not there."""
    found = {image: engine.image(image) for image in images}
    if absent := [image for image, about in found.items() if about is None]:
        raise UsageError(f"there is no image {absent[0]} here", hint="`docker images` lists what there is")
    folder.mkdir(parents=True, exist_ok=True)
    kept = {e["image"]: e for e in (read_json(folder / INDEX) or {"images": []})["images"]}
    for image, about in found.items():
        target = folder / (re.sub(r"[^A-Za-z0-9_.-]+", "_", image) + ".tar")
        say(f"saving {image}")
        draft = target.with_name(f".{target.name}.part")
        try:
            engine.run("save", "-o", str(draft), image)
            digest = file_sha256(draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        kept[image] = {
            "image": image, "id": (about or {})["Id"], "file": target.name, "sha256": digest,
            "bytes": target.stat().st_size, "labels": (about or {})["Config"].get("Labels") or {},
        }  # fmt: skip
    sums = "".join(f"{e['sha256']}  {e['file']}\n" for e in kept.values())
    write_atomic(folder / "SHA256SUMS", sums)
    index = {"schema": "images/1", "images": list(kept.values())}
    write_atomic(folder / INDEX, json.dumps(index, indent=1, ensure_ascii=False) + "\n")
    return [kept[image] for image in images]


def load_images(engine: Engine, folder: Path, say: Say) -> list[dict[str, Any]]:
    """Load every image of a folder; nothing is loaded when one file is not as it was saved."""
    index = read_json(folder / INDEX)
    if index is None:
        raise UsageError(
            f"{folder} holds no saved images", hint="it needs what `build_image.py save` wrote, whole"
        )
    entries: list[dict[str, Any]] = index["images"]
    for entry in entries:
        file = folder / entry["file"]
        say(f"checking {file.name}")
        if not file.is_file():
            raise HostError(f"{file} is missing", hint="copy the whole folder again")
        if file_sha256(file) != entry["sha256"]:
            raise HostError(f"{file} is not as it was saved: its checksum differs", hint="copy it again")
    for entry in entries:
        say(f"loading {entry['image']}")
        engine.run("load", "-q", "-i", str(folder / entry["file"]))
        loaded = engine.image(entry["image"])
        if loaded is None or loaded["Id"] != entry["id"]:
            say(f"warning: {entry['image']} has another id here than where it was saved")
    return entries
