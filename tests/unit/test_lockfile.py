"""Locks: read, parted into layers, written and read again."""

from __future__ import annotations

import pytest

from runner.core.lockfile import Locked, layered, read_entries, read_lock, write_lock
from runner.core.stack import Stack
from runner.errors import UnreachableError

UV = """\
numpy==2.2.6 ; python_full_version < '3.11' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via torch
numpy==2.4.6 ; python_full_version >= '3.11' \\
    --hash=sha256:cc
    # via
    #   torch
    #   deepspeed
deepspeed==0.19.5 \\
    --hash=sha256:dd
    # via -r stack.in
hjson==3.1.0 \\
    --hash=sha256:ee
    # via deepspeed
torch==2.13.0+cpu \\
    --hash=sha256:ff
ms-swift==4.6.0 \\
    --hash=sha256:00
"""
STACK = Stack.model_validate(
    {
        "stack": "s", "title": "", "python": "3.11",
        "targets": {"cpu": {"bases": {"debian12": "debian"}, "source": "a test"}},
        "packages": {"torch": {"version": "2.13.0+cpu"}, "deepspeed": {"version": "0.19.5"},
                     "ms-swift": {"version": "4.6.0"}},
        "components": {"deepspeed": ["deepspeed"]},
    }
)  # fmt: skip


def test_a_name_may_have_a_version_for_each_python() -> None:
    lock = layered(read_entries(UV), STACK)
    assert [(p.version, p.marker) for p in lock.packages if p.name == "numpy"] == [
        ("2.2.6", "python_full_version < '3.11'"),
        ("2.4.6", "python_full_version >= '3.11'"),
    ]


def test_a_component_takes_with_it_what_only_it_asks_for() -> None:
    lock = layered(read_entries(UV), STACK)
    names = {layer: sorted({p.name for p in some}) for layer, some in lock.layers.items()}
    assert names == {
        "torch": ["torch"], "packages": ["numpy"], "deepspeed-packages": ["deepspeed", "hjson"],
        "ms-swift": ["ms-swift"],
    }  # fmt: skip


def test_what_is_written_is_read_again() -> None:
    entries = [*read_entries(UV), Locked("triton-ascend", "3.2.1", index="ascend")]
    lock = layered(entries, STACK)
    text = write_lock(lock, ["Stack s."])
    again = read_lock(text, "s.txt")
    assert write_lock(again, ["Stack s."]) == text
    assert [(p.name, p.index) for p in again.unlocked] == [("triton-ascend", "ascend")]


@pytest.mark.parametrize("text", ["", "numpy==1\n", "\x00"])
def test_what_is_no_lock_says_so(text: str) -> None:
    with pytest.raises(UnreachableError, match=r"x\.txt is no lock"):
        read_lock(text, "x.txt")
