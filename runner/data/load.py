"""The arguments that ms-swift accepts, for the versions of a stack."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent


def swift_arg_table(ms_swift: str, transformers: str | None = None, trl: str | None = None) -> dict[str, Any]:
    """The nearest table: `exact` for these very versions, `close` when only the last number differs.

    `others` are the tables of the other ms-swift versions, `explained` the flags with a word of their own.
    """
    asked = {"ms_swift": ms_swift, "transformers": transformers, "trl": trl}
    chosen = min(_tables(), key=lambda t: _distance(asked, t))
    known = {k: v for k, v in asked.items() if v is not None}
    minor = [k for k in ("ms_swift", "transformers") if k in known]
    return {
        **chosen,
        "asked": ms_swift,
        "exact": all(chosen[k] == v for k, v in known.items()),
        "close": all(_numbers(chosen[k])[:2] == _numbers(known[k])[:2] for k in minor),
        "others": [t for t in _tables() if t is not chosen],
        "explained": _explained(),
    }


def _distance(asked: dict[str, str | None], table: dict[str, Any]) -> tuple[int, ...]:
    """By how much versions differ: ms-swift's release first, then transformers', then the last numbers."""
    minors, patches = [], []
    for package in ("ms_swift", "transformers", "trl"):
        wanted, has = _numbers(asked[package] or table[package]), _numbers(table[package])
        minors.append(abs(wanted[0] * 1000 + wanted[1] - has[0] * 1000 - has[1]))
        patches.append(abs(wanted[2] - has[2]))
    return (*minors, *patches)


def _numbers(version: str) -> tuple[int, int, int]:
    digits = ["".join(c for c in part if c.isdigit()) for part in version.partition("+")[0].split(".")]
    first = [int(d or 0) for d in [*digits, "", "", ""][:3]]
    return first[0], first[1], first[2]


@cache
def _tables() -> list[dict[str, Any]]:
    paths = sorted((DATA / "swift_args").glob("*.json"))
    return [json.loads(p.read_bytes()) for p in paths]


@cache
def _explained() -> dict[str, dict[str, Any]]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    rules = yaml.load((DATA / "rules" / "swift_flags.yaml").read_bytes(), loader)
    return {r["flag"]: r for r in rules}
