"""How far a training has come, for people who watch it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from runner.core.metrics import Row

_BAR = 20
_QUIET_S = 10.0
_PART = 20  # of a training's steps: 5 %


@dataclass(frozen=True)
class Progress:
    """The last that a training said of itself; None: it did not say."""

    step: int
    steps: int | None = None
    loss: float | None = None
    speed_s: float | None = None  # seconds a step
    memory_gib: float | None = None

    @property
    def left_s(self) -> float | None:
        """Seconds to the end at this speed."""
        if self.steps is None or self.speed_s is None:
            return None
        return max(0, self.steps - self.step) * self.speed_s


def progress(rows: Iterable[Row], before: Progress | None = None) -> Progress | None:
    """What the newest rows say together, and what was known before; None while nothing is."""
    last: Row = {}
    for row in rows:
        last.update(row)
    if "step" not in last:
        return before
    speed = _positive(last.get("train_speed(s/it)"))
    if speed is None and (backwards := _positive(last.get("train_speed(iter/s)"))):
        speed = _positive(1 / backwards)
    known = before or Progress(0)
    steps = last.get("max_steps")
    return Progress(
        step=int(last["step"]),
        steps=int(steps) if steps else known.steps,
        loss=last.get("loss", known.loss),
        speed_s=speed or known.speed_s,
        memory_gib=_positive(last.get("memory(GiB)")) or known.memory_gib,
    )


def worth_a_line(now: Progress, said: Progress | None, seconds: float) -> bool:
    """Whether a log gets a line, so long after the one before: each 5 % is enough, and each 10 seconds."""
    if said is None:
        return True
    if seconds < _QUIET_S or now == said:
        return False
    return now.steps is None or now.step < said.step or (now.step - said.step) * _PART >= now.steps


def progress_text(now: Progress, *, drawn: bool = True) -> str:
    """`━━━━────── 23/60  loss 1.234  2.1 s/step  0:01:18 left  14.2 GiB`, the bar where it is to be drawn."""
    parts = [f"step {now.step}"]
    if now.steps:
        done = min(_BAR, _BAR * now.step // now.steps)
        bar = "━" * done + "─" * (_BAR - done) + " "
        parts = [f"{bar if drawn else ''}{now.step}/{now.steps}"]
    if now.loss is not None:
        parts.append(f"loss {now.loss:.4g}")
    if now.speed_s is not None:
        parts.append(f"{now.speed_s:.4g} s/step" if now.speed_s >= 0.1 else f"{1 / now.speed_s:.4g} steps/s")
    if now.left_s is not None:
        minutes, seconds = divmod(round(now.left_s), 60)
        parts.append(f"{minutes // 60}:{minutes % 60:02}:{seconds:02} left")
    if now.memory_gib:
        parts.append(f"{now.memory_gib:.1f} GiB")
    return "  ".join(parts)


def _positive(value: float | None) -> float | None:
    """A speed or size that can be; Megatron and transformers round small ones to 0."""
    return value if value is not None and math.isfinite(value) and value > 0 else None
