"""Which chip `npu-smi info -t board` tells of, as SOC_VERSION names it."""

from __future__ import annotations

import re


def soc_of(text: str) -> str | None:
    """SOC_VERSION, lower case; None when the text does not tell it.

    vllm-ascend's setup.py reads it the same way: A2 is type and name of the chip, A3 and 950 are the name of
    the chip and the one of the NPU.
    """
    said = {m[1].strip(): m[2].strip() for m in re.finditer(r"^\s*([A-Za-z ]+?)\s*:\s*(.+?)\s*$", text, re.M)}
    name, npu = said.get("Chip Name", ""), said.get("NPU Name", "")
    name = name.removeprefix("Ascend")
    if re.fullmatch(r"910B\w*(-\d+)?", name):
        return f"ascend{name.lower()}"
    if name == "A2G3":
        return "ascend910b1"
    if name == "910" and re.fullmatch(r"9\d{3}", npu):
        return f"ascend910_{npu}"
    if name.startswith("950"):
        return f"ascend{name}_{npu}".lower().rstrip("_")
    return None
