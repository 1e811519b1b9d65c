"""Which published images of ms-swift fit a host."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from runner.core.parse.cann import Cann, parse_cann
from runner.core.parse.tags import ImageTag


def fitting(
    tags: Sequence[ImageTag],
    *,
    generation: str,
    os: str | None = None,
    python: str | None = None,
    newest_cann: Cann | None = None,
) -> list[ImageTag]:
    """The images of ms-swift for this hardware, newest first; what a tag does not say fits nothing asked."""
    fit = [
        t
        for t in tags
        if t.product == "ms-swift"
        and t.generation == generation
        and _os_fits(t.os, os)
        and python in (None, t.python)
        and _cann_fits(t.cann, newest_cann)
    ]
    return sorted(fit, key=_age, reverse=True)  # a stable sort: equal versions stay in their order


def _os_fits(said: str | None, asked: str | None) -> bool:
    """Whether an operating system is the one asked for, with its release or without."""
    if asked is None:
        return True
    return said is not None and asked.lower() in (said, said.rstrip("0123456789."))


def _cann_fits(said: str | None, newest: Cann | None) -> bool:
    """Whether the driver takes this CANN, for certain."""
    return newest is None or (said is not None and parse_cann(said) <= newest)


def _age(tag: ImageTag) -> tuple[bool, Version]:
    """The place of a version in time; a branch has none and comes before all releases."""
    try:
        return True, Version(tag.version or "")
    except InvalidVersion:
        return False, Version("0")
