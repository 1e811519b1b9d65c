"""The names that an image gets: the short one of the guide, and one that says the whole stack."""

from __future__ import annotations

import re
from collections.abc import Mapping


def short_tag(swift: str, generation: str, python: str, arch: str) -> str:
    """`{swift_branch}-{A2|A3|950}-{py311}-{arm|x86}`, as the ms-swift guide names what one builds."""
    return _plain(f"{swift}-{generation}-py{python.replace('.', '')}-{arch}")


def full_tag(swift: str, chip: str | None, os: str, python: str, versions: Mapping[str, str | None]) -> str:
    """`v4.5.2-cann9.1.0-torch_npu2.10.0.post4-910b-ubuntu22.04-py3.12`, as ms-swift publishes."""
    cann, npu = versions.get("cann"), versions.get("torch_npu")
    parts = [
        swift,
        f"cann{cann}" if cann else "",
        f"torch_npu{npu}" if npu else "",
        chip or "cpu",
        os,
        f"py{python}",
    ]
    return _plain("-".join(p for p in parts if p))


def swift_name(version: str, ref: str | None) -> str:
    """The first part of both: a branch as it is called, or `v` and the version."""
    return ref or f"v{version}"


def _plain(tag: str) -> str:
    """A branch may have slashes, a tag may not."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", tag)[:128].lstrip(".-")
