"""Which published images of ms-swift fit a host."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from runner.core.parse.tags import ImageTag
from runner.core.support import DriverRow


def fitting(
    tags: Sequence[ImageTag],
    *,
    generation: str,
    os: str | None = None,
    python: str | None = None,
    driver: str | None = None,
    rows: Sequence[DriverRow] = (),
) -> list[ImageTag]:
    """The images of ms-swift for this hardware, newest first; what a tag does not say fits nothing asked."""
    fit = [
        t
        for t in tags
        if t.product == "ms-swift"
        and t.generation == generation
        and _os_fits(t.os, os)
        and python in (None, t.python)
        and (driver is None or (t.cann is not None and runs_with(t.cann, driver, generation, rows)))
    ]
    return sorted(fit, key=_age, reverse=True)  # a stable sort: equal versions stay in their order


def _os_fits(said: str | None, asked: str | None) -> bool:
    """Whether an operating system is the one asked for, with its release or without."""
    if asked is None:
        return True
    return said is not None and asked.lower() in (said, said.rstrip("0123456789."))


def runs_with(cann: str, driver: str, generation: str, rows: Sequence[DriverRow]) -> bool:
    """Whether a CANN is known to run with a driver (HDK); a row of its own release counts first."""
    own = [r for r in rows if generation in r.products and _of_line(cann, r.cann)]
    closest = max(own, key=lambda r: len(r.cann), default=None)
    return closest is not None and any(_of_line(driver, line) for line in closest.runs_with)


def _of_line(version: str, line: str) -> bool:
    """Whether 25.5.2 is of the line 25.5, or 26.0.rc1 is 26.0.RC1 itself."""
    version, line = version.lower(), line.lower()
    return version == line or (version.startswith(f"{line}.") and line.count(".") == 1)


def _age(tag: ImageTag) -> tuple[bool, Version]:
    """The place of a version in time; a branch has none and comes before all releases."""
    try:
        return True, Version(tag.version or "")
    except InvalidVersion:
        return False, Version("0")
