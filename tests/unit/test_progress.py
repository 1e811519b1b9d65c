"""What a training says of itself, for people."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from runner.core.metrics import read_rows
from runner.core.progress import Progress, progress, progress_text

ROW = '{"loss": 1.25, "global_step/max_steps": "23/60", "memory(GiB)": 14.2, "train_speed(s/it)": 2.0}\n'


def test_a_row_of_ms_swift() -> None:
    now = progress(read_rows([ROW, '{"eval_loss": 1.5, "global_step/max_steps": "23/60"}', "{torn"]))
    assert now == Progress(step=23, steps=60, loss=1.25, speed_s=2.0, memory_gib=14.2)
    assert progress_text(now) == "━" * 7 + "─" * 13 + " 23/60  loss 1.25  2 s/step  0:01:14 left  14.2 GiB"


def test_less_is_known() -> None:
    assert progress([]) is None
    assert progress_text(Progress(step=3)) == "step 3"
    assert progress_text(Progress(step=3, speed_s=0.01)) == "step 3  100 steps/s"


NUMBERS = st.none() | st.floats(min_value=1e-9, max_value=1e9)


@given(
    st.integers(0, 10**9), st.none() | st.integers(1, 10**9), NUMBERS | st.just(math.nan), NUMBERS, NUMBERS
)
def test_any_numbers_give_one_line(
    step: int, steps: int | None, loss: float | None, speed: float | None, memory: float | None
) -> None:
    assert "\n" not in progress_text(Progress(step, steps, loss, speed, memory))
