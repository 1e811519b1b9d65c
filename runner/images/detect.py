"""Which chip this host has, asked of npu-smi."""

from __future__ import annotations

import re
import shutil
import subprocess

from runner.core.parse.board import soc_of


def detect_soc() -> str | None:
    """SOC_VERSION of this host's first NPU; None without one, or when npu-smi does not tell."""
    if shutil.which("npu-smi") is None:
        return None
    ids = re.findall(r"NPU ID\s*:\s*(\d+)", _ask("-l"))
    if not ids:
        return None
    board = _ask("-t", "board", "-i", ids[0])
    if "Chip Name" not in board:  # of the 950 the first answer has it, and there is no -c
        board += "\n" + _ask("-t", "board", "-i", ids[0], "-c", "0")
    return soc_of(board)


def _ask(*args: str) -> str:
    try:
        done = subprocess.run(
            ["npu-smi", "info", *args],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
