"""Keeps secrets out of what is written down: by the name of a value, and inside addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "(not recorded)"
_SECRET = re.compile(
    r"(?i)(^|[_.-])(token|secrets?|password|passwd|credentials?|(api|access|private|secret|ssh)[_.-]?key)$"
)
_OF_TEXT = re.compile(r"(?i)(eos|bos|pad|unk|sep|image|stop)_token$")
_USER_IN_URL = re.compile(r"(?<=://)[^/\s]*@")


def is_secret(name: str) -> bool:
    """Whether a value of this name is nobody's business: `HF_TOKEN` is, `eos_token` is not."""
    return bool(_SECRET.search(name)) and not _OF_TEXT.search(name)


def without_credentials(text: str) -> str:
    """The text without user and password in the addresses it holds."""
    return _USER_IN_URL.sub("", text)


def public(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they may be written down."""
    return {name: HIDDEN if is_secret(name) else _public(value) for name, value in values.items()}


def _public(value: Any) -> Any:
    match value:
        case str():
            return without_credentials(value)
        case dict():
            return public(value)
        case list() | tuple():
            return [_public(v) for v in value]
    return value
