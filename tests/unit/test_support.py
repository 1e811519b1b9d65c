"""The tables of what goes together."""

from __future__ import annotations

from collections import Counter

import pytest

from runner.core.hardware import generation_of
from runner.core.support import product_of, read_version
from runner.data.support import load_build_rules, load_hardware, load_support, load_unsupported


def test_every_row_has_a_source() -> None:
    support = load_support()
    rows = [
        *support.torch_npu.rows, *support.vllm_ascend.rows, *support.ms_swift.rows, *support.torch.rows,
        *support.cann.rows, *support.driver.rows, *load_unsupported(), *load_hardware(), *load_build_rules(),
    ]  # fmt: skip
    assert len(rows) > 80
    assert [r for r in rows if len(r.source) < 4] == []


def test_every_soc_belongs_to_one_generation() -> None:
    names = Counter(s for h in load_hardware() for s in h.socs)
    assert [n for n, count in names.items() if count > 1] == []
    for hardware in load_hardware():
        assert hardware.soc in hardware.socs
        for soc in (*hardware.socs, hardware.soc.upper()):
            of = generation_of(soc, load_hardware())
            assert of is not None
            assert of.generation == hardware.generation


@pytest.mark.parametrize(
    ("word", "product"),
    [
        ("310P", "310P"), ("ascend310p3", "310P"), ("Ascend 310P", "310P"), ("910A", "910"),
        ("ascend910b", None), ("A2", None), ("ascend310p3vir04", "310P"),
    ],
)  # fmt: skip
def test_unsupported_products_are_known_by_their_names(word: str, product: str | None) -> None:
    found = product_of(word, load_unsupported())
    assert (found is None) == (product is None)
    assert found is None or (product in found.product and found.reason)


def test_versions_are_read_as_tags_write_them() -> None:
    assert str(read_version("core_v0.16.0")) == "0.16.0"
    assert str(read_version("2.10.0.post4+git12")) == "2.10.0.post4+git12"
    assert read_version("main") is None
