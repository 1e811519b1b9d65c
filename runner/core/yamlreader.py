"""Builds a document's nodes from YAML parser events: no recursion, within limits, all errors collected."""

from __future__ import annotations

from typing import Any, NoReturn

import yaml

from runner.core.document import Node, Spot, spot_finding
from runner.core.scalars import ScalarError, plain_scalar
from runner.core.wording import did_you_mean, printable, shown
from runner.core.yamlproblem import problem_finding
from runner.errors import Finding

MAX_DEPTH = 100
MAX_NODES = 200_000  # aliases expanded
MAX_CHARS = 4_000_000  # aliases expanded
MAX_FINDINGS = 100

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # only its scanner and parser are used


class _Stop(Exception):  # noqa: N818 - control flow, no error
    """Nothing more can be read after this finding."""


class _Frame:
    """A list or mapping whose end has not been read yet."""

    def __init__(self, event: Any, is_map: bool, anchor: str | None) -> None:
        self.event = event
        self.is_map = is_map
        self.anchor = anchor
        self.items: list[Node] = []
        self.pairs: dict[str, tuple[Spot, Node]] = {}
        self.key: tuple[str | None, Spot] | None = None  # (None, ...) is a key that cannot be used
        self.nodes = 1
        self.chars = 0
        self.height = 0


class Reader:
    """Builds nodes from parser events without recursion, and collects findings."""

    def __init__(self, file: str, lines: tuple[str, ...]) -> None:
        self.file = file
        self.lines = lines
        self.findings: list[Finding] = []
        self.root: Node | None = None
        self.documents = 0
        self.stack: list[_Frame] = []
        self.anchors: dict[str, Node | None] = {}  # None: not finished yet
        self.added = 0  # nodes read so far, aliases expanded
        self.added_chars = 0

    def read(self, text: str) -> Node | None:
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                self._take(event)
        except _Stop:
            pass
        except yaml.YAMLError as problem:
            self.findings.append(problem_finding(self.file, self.lines, problem))
        return self.root

    def _take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._add(self._anchored(event, self._scalar(event)), event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close(event)
            case yaml.AliasEvent():
                self._add(self._alias(event), event)
            case yaml.DocumentStartEvent():
                self._document(event)

    def _document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            self._stop(event, "several-documents", "a second document starts here; one file holds one")
        if event.version not in (None, (1, 2)):
            version = ".".join(str(v) for v in event.version)
            message = f"this file says YAML {version}, but files are read as YAML 1.2"
            first = next((i for i, line in enumerate(self.lines, 1) if line.startswith("%YAML")), 1)
            self._report(Spot(first, 1, 5), "yaml-version", message, "remove the %YAML line")

    def _scalar(self, event: Any) -> Node:
        text, value = event.value, event.value
        self._no_tag(event)
        spot = self._spot(event)
        if not event.style and event.tag is None:
            try:
                value = plain_scalar(text)
            except ScalarError as problem:
                self._report(spot, "number", str(problem), "put it in quotes if it is meant as text")
        if "\0" in text:
            self._report(spot, "control-character", "this text holds a NUL character (\\0)")
        return Node(spot, event.end_mark.line + 1, value, None, 1, len(text), 0)

    def _open(self, event: Any) -> None:
        self._no_tag(event)
        if len(self.stack) >= MAX_DEPTH:
            self._stop(event, "too-deep", f"this is nested more than {MAX_DEPTH} levels deep")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(_Frame(event, isinstance(event, yaml.MappingStartEvent), event.anchor))

    def _close(self, event: Any) -> None:
        frame = self.stack.pop()
        value: object = [n.value for n in frame.items]
        if frame.is_map:
            value = {name: node.value for name, (_, node) in frame.pairs.items()}
        spot = self._collection_spot(frame, event)
        below = frame.pairs if frame.is_map else frame.items
        node = Node(spot, event.end_mark.line + 1, value, below, frame.nodes, frame.chars, frame.height)
        if frame.anchor is not None:
            self.anchors[frame.anchor] = node
        self._add(node, frame.event, counted=True)

    def _anchored(self, event: Any, node: Node) -> Node:
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _alias(self, event: Any) -> Node:
        spot = self._spot(event)
        name = event.anchor
        known = self.anchors.get(name)
        if known is not None:
            if known.height + len(self.stack) > MAX_DEPTH:
                self._stop(event, "too-deep", f"*{name} here nests more than {MAX_DEPTH} levels deep")
            return known._replace(spot=spot)
        if name in self.anchors:
            self._report(spot, "recursive-alias", f"*{printable(name)} stands inside its own anchor")
        else:
            message = f"there is no anchor &{printable(name)} above" + did_you_mean(name, self.anchors)
            self._report(spot, "unknown-alias", message, "put text that starts with * in quotes")
        return Node(spot, spot.line, "", None, 1, 0, 0)  # reported; text, so that it passes for a key too

    def _add(self, node: Node, event: Any, counted: bool = False) -> None:
        if not counted:
            self._count(node, event)
        if not self.stack:
            self.root = node
            return
        frame = self.stack[-1]
        frame.nodes += node.nodes
        frame.chars += node.chars
        frame.height = max(frame.height, node.height + 1)
        if not frame.is_map:
            frame.items.append(node)
        elif frame.key is None:
            frame.key = (self._key(node, event, frame), node.spot)
        else:
            name, spot = frame.key
            frame.key = None
            if name is not None:
                frame.pairs[name] = (spot, node)

    def _count(self, node: Node, event: Any) -> None:
        self.added += node.nodes
        self.added_chars += node.chars
        if self.added > MAX_NODES or self.added_chars > MAX_CHARS:
            what = "aliases expand to" if isinstance(event, yaml.AliasEvent) else "the file holds"
            limit = f"{MAX_NODES} values" if self.added > MAX_NODES else f"{MAX_CHARS} characters"
            self._stop(event, "too-many-values", f"{what} more than {limit}")

    def _key(self, node: Node, event: Any, frame: _Frame) -> str | None:
        """The key to use; None when it cannot be one, which is reported."""
        key = node.value
        spot = node.spot._replace(width=max(1, node.spot.width))
        if node.below is not None:
            hint = "put '${{ ... }}' or text that starts with { or [ in quotes"
            self._report(spot, "key", f"a key must be text, got {shown(key)}", hint)
        elif not isinstance(key, str):
            text = getattr(event, "value", "")  # an alias has none
            written = "an empty key" if key is None and not text else shown(key)
            quoted = f"put it in quotes: '{printable(text[:60])}':" if text else None
            self._report(spot, "key", f"a key must be text, got {written}", quoted)
        elif key == "<<" and not event.style:
            message = "'<<' (merge) belongs to YAML 1.1 and is not supported"
            self._report(spot, "merge-key", message, "write the keys out")
        elif key in frame.pairs:
            first = frame.pairs[key][0].line
            self._report(
                spot, "duplicate-key", f"duplicate key {shown(key)}; it stands on line {first} already"
            )
        else:
            return key
        return None

    def _no_tag(self, event: Any) -> None:
        if event.tag is not None:
            message = f"the tag {printable(str(event.tag)[:60])} is not supported"
            self._report(
                self._spot(event), "tag", message, "remove it; put the value in quotes if it is text"
            )

    def _spot(self, event: Any) -> Spot:
        start, end = event.start_mark, event.end_mark
        if start.line == end.line:
            return Spot(start.line + 1, start.column + 1, end.column - start.column)
        rest = len(self.lines[start.line].rstrip()) - start.column if start.line < len(self.lines) else 1
        return Spot(start.line + 1, start.column + 1, max(1, rest))

    def _collection_spot(self, frame: _Frame, end: Any) -> Spot:
        start = frame.event.start_mark
        if frame.event.flow_style and start.line == end.end_mark.line:
            return Spot(start.line + 1, start.column + 1, end.end_mark.column - start.column)
        first = next((s for s, _ in frame.pairs.values()), None)
        width = first.width if first and first[:2] == (start.line + 1, start.column + 1) else 1
        return Spot(start.line + 1, start.column + 1, width)

    def _report(self, spot: Spot, code: str, message: str, hint: str | None = None) -> None:
        if len(self.findings) >= MAX_FINDINGS:
            note = Finding(
                "too-many-findings", f"more than {MAX_FINDINGS} errors; the rest is not read", file=self.file
            )
            self.findings.append(note)
            raise _Stop
        self.findings.append(spot_finding(self.file, self.lines, spot, code, message, hint=hint))

    def _stop(self, event: Any, code: str, message: str) -> NoReturn:
        self._report(self._spot(event)._replace(width=1), code, message)
        raise _Stop
