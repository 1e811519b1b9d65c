"""Which chip a host has, from what npu-smi says of its board."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.core.parse.board import soc_of
from runner.images.detect import detect_soc

A3 = "NPU ID : 0\nChip Type : Ascend\nChip Name : Ascend910\nNPU Name : 9392\n"


@pytest.mark.parametrize(
    ("text", "soc"),
    [
        ("    Chip Type              : Ascend\n    Chip Name              : 910B3\n", "ascend910b3"),
        ("Chip Type : Ascend\nChip Name : 910B4-1\nNPU Name : NA\n", "ascend910b4-1"),
        ("Chip Name : A2G3\n", "ascend910b1"),
        (A3, "ascend910_9392"),
        ("Chip Name : 950DT\nNPU Name : 9582\n", "ascend950dt_9582"),
        ("Chip Name : Ascend950PR\nNPU Name : 9599\n", "ascend950pr_9599"),
        ("Chip Name : xxx\n", None),
        ("Chip Name : Ascend910\n", None),
        ("", None),
        ("芯片 : 910B\n", None),
    ],
)  # fmt: skip
def test_soc(text: str, soc: str | None) -> None:
    assert soc_of(text) == soc


def test_npu_smi_is_asked_as_its_versions_want_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "npu-smi"
    (tmp_path / "chip").write_text(A3)
    tool.write_text(
        '#!/bin/sh\ncase "$*" in\n"info -l") echo "Total Count : 8"; echo "NPU ID : 3";;\n'
        '"info -t board -i 3") echo "Product Name : x";;\n'
        f'"info -t board -i 3 -c 0") cat "{tmp_path}/chip";;\n*) exit 1;;\nesac\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert detect_soc() == "ascend910_9392"
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert detect_soc() is None
