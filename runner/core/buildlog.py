"""Reads what the classic builder and BuildKit print: which step runs, how long it took, which failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

_CLASSIC = re.compile(r"^Step (\d+)/(\d+) : (.*)$")
_VERTEX = re.compile(r"^#(\d+) \[(?:(?:linux/\S+ )?)?(?:(\S+) )?\s*(\d+)/(\d+)\] (.*)$")
_LINE = re.compile(r"^#(\d+) (?:(\d+\.\d+) )?(.*)$")
_KEEP = 40


@dataclass(frozen=True)
class BuildStep:
    """One instruction of a Dockerfile."""

    key: str
    what: str
    seconds: float | None = None
    cached: bool = False
    failed: bool = False


@dataclass
class BuildLog:
    """The steps so far, in the order in which they began; times are given, never read."""

    steps: dict[str, BuildStep] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)
    _said: dict[str, list[str]] = field(default_factory=dict)
    _now: str = ""
    _all: list[str] = field(default_factory=list)

    def line(self, text: str, now: float) -> BuildStep | None:
        """Take one line; the step that it begins, if it begins one."""
        self._all = [*self._all[-_KEEP:], text]
        if m := _CLASSIC.match(text):
            self._end(self._now, now)
            return self._begin(m[1], f"[{m[1]}/{m[2]}] {m[3]}", now)
        if (m := _VERTEX.match(text)) and not text.endswith("..."):
            if m[1] in self.steps:
                return None
            stage = f"{m[2]} " if m[2] else ""
            return self._begin(m[1], f"[{stage}{m[3]}/{m[4]}] {m[5]}", now)
        self._about(text, now)
        return None

    def end(self, now: float, *, failed: bool) -> None:
        """The build is over."""
        if self._now and not any(k for k in self.steps if self.steps[k].failed):
            self._end(self._now, now)
            if failed and self._now in self.steps:
                self.steps[self._now] = replace(self.steps[self._now], failed=True)

    @property
    def failed(self) -> BuildStep | None:
        """The step that ended the build."""
        return next((s for s in self.steps.values() if s.failed), None)

    def tail(self, count: int = 20) -> Sequence[str]:
        """The last lines of the step that failed, or of all."""
        step = self.failed
        lines = self._said.get(step.key, []) if step else []
        return (lines or self._all)[-count:]

    def _begin(self, key: str, what: str, now: float) -> BuildStep:
        self._now = key
        self._began[key] = now
        self.steps[key] = BuildStep(key, re.sub(r"\s+", " ", what)[:160])
        return self.steps[key]

    def _end(self, key: str, now: float) -> None:
        if key in self.steps and self.steps[key].seconds is None:
            self.steps[key] = replace(self.steps[key], seconds=round(now - self._began[key], 2))

    def _about(self, text: str, now: float) -> None:
        m = _LINE.match(text)
        key = m[1] if m else self._now
        if key not in self.steps:
            return
        body = m[3] if m else text
        step = self.steps[key]
        if body in ("CACHED",) or body.strip() == "---> Using cache":
            self.steps[key] = replace(step, cached=True, seconds=0.0)
        elif m and (done := re.match(r"DONE (\d+\.\d+)s", body)):
            self.steps[key] = replace(step, seconds=float(done[1]))
        elif m and m[2] is None and body.startswith("ERROR"):  # a step's own lines have a time
            self._end(key, now)
            self.steps[key] = replace(self.steps[key], failed=True)
        else:
            self._said[key] = [*self._said.get(key, [])[-_KEEP:], body]
