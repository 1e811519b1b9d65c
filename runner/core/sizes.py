"""Sizes in bytes, for people."""

from __future__ import annotations


def size_text(size: int | None) -> str:
    """A size in the largest power of 1024 that fits: `512 B`, `1.2 GiB`; empty when it is not known."""
    if size is None:
        return ""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1023.95 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
