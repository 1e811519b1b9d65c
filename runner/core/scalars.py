"""Plain YAML scalars by the YAML 1.2 core schema (https://yaml.org/spec/1.2.2/#103-core-schema)."""

from __future__ import annotations

import math
import re

_WORDS: dict[str, object] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **{"-" + word: -math.inf for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NUMBER_START = frozenset("+-.0123456789")
_MAX_DIGITS = 400  # far beyond any real number, far below the length at which int() refuses or gets slow


class ScalarError(ValueError):
    """A number that has the right form but no usable value."""


def plain_scalar(text: str) -> object:
    """The value of an unquoted scalar: null, true or false, a number, else the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INT.fullmatch(text):
        return _whole(text, text, 10)
    if _OCTAL.fullmatch(text):
        return _whole(text, text[2:], 8)
    if _HEX.fullmatch(text):
        return _whole(text, text[2:], 16)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise ScalarError(f"the number {text[:40]} is too large")
        return number
    return text


def _whole(text: str, digits: str, base: int) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ScalarError(f"the number {text[:20]}... has {len(digits)} digits")
    return int(digits, base)
