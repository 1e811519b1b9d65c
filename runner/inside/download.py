"""Bring a model or a data set into the cache: python download.py --model ID --hub HUB --out FILE."""
# Runs inside a stack's environment, where the hubs' own clients are; imports nothing of ours.

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Any


def main(argv: list[str]) -> int:
    """Print and record the folder and the revision; end with 0, or 1 when the hub does not give it."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", help="the model's id on the hub")
    what.add_argument("--dataset", help="the data set's id on the hub")
    parser.add_argument("--hub", choices=["modelscope", "huggingface"], required=True)
    parser.add_argument("--revision", help="a tag, branch or commit")
    parser.add_argument("--out", type=Path, required=True, help="where the record goes")
    asked = parser.parse_args(argv)
    kind, name = ("model", asked.model) if asked.model else ("dataset", asked.dataset)
    if os.environ.get("HF_HUB_OFFLINE") == "1":
        print(f"download: offline; {name} is not fetched", file=sys.stderr)
        return 1
    fetch = from_modelscope if asked.hub == "modelscope" else from_huggingface
    path = fetch(kind, name, asked.revision)
    record = {"schema": "download/1", "kind": kind, "id": name, "hub": asked.hub, "path": path}
    record.update(asked_revision=asked.revision, revision=revision_of(Path(path), asked.revision))
    asked.out.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"download: {name} at {record['revision'] or 'an unnamed revision'} is in {path}")
    return 0


def from_modelscope(kind: str, name: str, revision: str | None) -> str:
    """The folder in ModelScope's cache."""
    import modelscope

    call: Any = modelscope.snapshot_download if kind == "model" else modelscope.dataset_snapshot_download
    return str(call(name, revision=revision))


def from_huggingface(kind: str, name: str, revision: str | None) -> str:
    """The folder in Hugging Face's cache; its name is the commit."""
    import huggingface_hub

    return str(huggingface_hub.snapshot_download(name, repo_type=kind, revision=revision))


def revision_of(path: Path, asked: str | None) -> str | None:
    """What was really fetched: the commit in a Hugging Face path, the line in ModelScope's own mark."""
    if re.fullmatch(r"[0-9a-f]{40}", path.name):
        return path.name
    mark = path / ".mv"  # "Revision:master,CreatedAt:1700000000"
    if mark.is_file():
        found = re.search(r"Revision:([^,\s]+)", mark.read_text(encoding="utf-8"))
        return found[1] if found else asked
    return asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
