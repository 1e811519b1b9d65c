"""Real ms-swift parsers of every supported version: others are laid over the cpu stack with PYTHONPATH.

python overlays.py STACK_PYTHON CACHE_FOLDER makes all overlays and prints where they are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_TOKENIZERS = "tokenizers>=0.22,<=0.23.0"
OVERLAYS: dict[str, tuple[str, ...]] = {
    "4.3.2": (
        "ms-swift==4.3.2",
        "transformers==4.57.6",
        "trl==0.29.1",
        "peft==0.19.1",
        "huggingface_hub>=0.34,<1",
        _TOKENIZERS,
    ),
    "4.5.3": ("ms-swift==4.5.3", "transformers==5.5.4", "trl==0.29.1", "peft==0.19.1", _TOKENIZERS),
}
PARSER = Path(__file__).with_name("swift_parser.py")


def overlay(python: Path, cache: Path, ms_swift: str) -> Path:
    """The folder with that ms-swift and its own transformers; made once, about 7 s and 160 MB each."""
    folder = cache / f"ms-swift-{ms_swift}"
    if folder.is_dir():
        return folder
    building = cache / f".building-{ms_swift}-{os.getpid()}"
    try:
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", str(building), *OVERLAYS[ms_swift]], check=True)
        try:
            building.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


def complaints(
    python: Path, cases: Sequence[tuple[str, Sequence[str]]], over: Path | None = None
) -> list[Any]:
    """For each (command, tokens): None when the real parser takes them, else why not."""
    asked = json.dumps([[command, list(argv)] for command, argv in cases])
    return list(_ask(python, "accept", over, asked))


def described(python: Path, over: Path | None = None) -> dict[str, Any]:
    """The real arguments of every importable command, in the words of the tables."""
    return dict(_ask(python, "describe", over))


def _ask(python: Path, what: str, over: Path | None, stdin: str = "") -> Any:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env = {**env, "HF_HUB_OFFLINE": "1", **({"PYTHONPATH": str(over)} if over else {})}
    argv = [str(python), str(PARSER), what]
    done = subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def main() -> int:
    """Make every overlay."""
    cache = Path(sys.argv[2])
    cache.mkdir(parents=True, exist_ok=True)
    for ms_swift in OVERLAYS:
        print(overlay(Path(sys.argv[1]), cache, ms_swift))
    return 0


if __name__ == "__main__":
    sys.exit(main())
