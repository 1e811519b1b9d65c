"""How far a training has come, for people who watch it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runner.core.metrics import Row

_BAR = 20


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


def progress(rows: Iterable[Row]) -> Progress | None:
    """What the newest rows say together; None without rows."""
    last: Row = {}
    for row in rows:
        last.update(row)
    if "step" not in last:
        return None
    speed = last.get("train_speed(s/it)")
    if speed is None and last.get("train_speed(iter/s)"):
        speed = 1 / last["train_speed(iter/s)"]
    steps = last.get("max_steps")
    return Progress(
        step=int(last["step"]),
        steps=int(steps) if steps else None,
        loss=last.get("loss"),
        speed_s=speed,
        memory_gib=last.get("memory(GiB)"),
    )


def progress_text(now: Progress) -> str:
    """`━━━━────── 23/60  loss 1.234  2.1 s/step  0:01:18 left  14.2 GiB`."""
    parts = []
    if now.steps:
        done = min(_BAR, _BAR * now.step // now.steps)
        parts.append("━" * done + "─" * (_BAR - done) + f" {now.step}/{now.steps}")
    else:
        parts.append(f"step {now.step}")
    if now.loss is not None:
        parts.append(f"loss {now.loss:.4g}")
    if now.speed_s is not None:
        parts.append(f"{now.speed_s:.2g} s/step" if now.speed_s >= 0.1 else f"{1 / now.speed_s:.3g} steps/s")
    if now.left_s is not None:
        minutes, seconds = divmod(round(now.left_s), 60)
        parts.append(f"{minutes // 60}:{minutes % 60:02}:{seconds:02} left")
    if now.memory_gib:
        parts.append(f"{now.memory_gib:.1f} GiB")
    return "  ".join(parts)
