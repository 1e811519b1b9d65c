"""Reads what a person wrote: bytes to values with places, or every error at once; never anything else."""

from __future__ import annotations

import re

from runner.core.document import (
    Document,
    Node,
    Path,
    Spot,
    finding,
    finding_json,
    format_finding,
    path_text,
    spot_finding,
)
from runner.core.wording import shown
from runner.core.yamlreader import Reader
from runner.errors import Finding, SpecError

__all__ = [
    "Document",
    "Path",
    "finding",
    "finding_json",
    "format_finding",
    "parse_value",
    "path_text",
    "read_yaml",
]

MAX_BYTES = 1_000_000
_BREAK = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")  # what libyaml counts as the end of a line
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_yaml(raw: bytes, file: str, *, max_bytes: int = MAX_BYTES, empty_ok: bool = False) -> Document:
    """The one mapping that this YAML 1.2 text holds; SpecError with all findings when it is not one."""
    if len(raw) > max_bytes:
        message = f"the file has {len(raw)} bytes; at most {max_bytes} are read"
        raise SpecError([Finding("too-large", message, file=file, hint="is this the right file?")])
    text = _decode(raw, file)
    lines = tuple(_BREAK.split(text))
    reader = Reader(file, lines)
    root = reader.read(text)
    if empty_ok and not reader.findings and (root is None or root.value is None):
        root = Node(Spot(1, 1, 0), 1, {}, {}, 1, 0, 0)
    if reader.findings or root is None or not isinstance(root.value, dict):
        raise SpecError(reader.findings or [_no_mapping(file, lines, root)])
    return Document(file, text, root.value, root, lines)


def parse_value(text: str, name: str) -> object:
    """The value of one YAML 1.2 text such as the right side of --set; SpecError when it cannot be read."""
    lines = tuple(_BREAK.split(text))
    if bad := _FORBIDDEN.search(text):
        raise SpecError([_control(name, lines, text, bad.start())])
    reader = Reader(name, lines)
    root = reader.read(text)
    if reader.findings:
        raise SpecError(reader.findings)
    return None if root is None else root.value


def _decode(raw: bytes, file: str) -> str:
    if raw.startswith(_UTF16):
        message = "the file is UTF-16, only UTF-8 can be read"
        raise SpecError([Finding("encoding", message, file=file, line=1, col=1, hint="save it as UTF-8")])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise SpecError([_not_utf8(raw, file, problem.start)]) from None
    if bad := _FORBIDDEN.search(text):
        raise SpecError([_control(file, _BREAK.split(text), text, bad.start())])
    return text


def _not_utf8(raw: bytes, file: str, at: int) -> Finding:
    # utf-8-sig counts its offset after the byte order mark
    mark = raw.startswith(_UTF8_MARK)
    raw = raw.removeprefix(_UTF8_MARK)
    lines = _BREAK.split(raw[: at + 200].decode("utf-8", errors="replace"))
    spot = _spot_at(raw[:at].decode("utf-8", errors="replace"))
    message = f"this is not UTF-8: byte 0x{raw[at]:02x} at offset {at + len(_UTF8_MARK) * mark}"
    return spot_finding(file, lines, spot, "encoding", message, hint="save the file as UTF-8")


def _control(file: str, lines: list[str] | tuple[str, ...], text: str, at: int) -> Finding:
    message = f"the control character U+{ord(text[at]):04X} is not allowed"
    hint = (
        "is this a text file?" if text[at] == "\0" else "remove it, or write it as an escape in double quotes"
    )
    return spot_finding(file, lines, _spot_at(text[:at]), "control-character", message, hint=hint)


def _spot_at(before: str) -> Spot:
    above = _BREAK.split(before)
    return Spot(len(above), len(above[-1]) + 1, 1)


def _no_mapping(file: str, lines: tuple[str, ...], root: Node | None) -> Finding:
    if root is None or root.value is None:
        return Finding("empty", "the file is empty", file=file, line=1, col=1)
    message = f"the top level must be a mapping (key: value), got {shown(root.value)}"
    spot = root.spot._replace(width=max(1, root.spot.width))
    return spot_finding(file, lines, spot, "not-a-mapping", message)
