"""What a training says of itself, for people."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.metrics import read_rows
from runner.core.progress import Progress, progress, progress_text, worth_a_line

ROW = '{"loss": 1.25, "global_step/max_steps": "23/60", "memory(GiB)": 14.2, "train_speed(s/it)": 2.0}\n'
# the rows of a real `swift sft` that was stopped after step 20
REAL = [
    '{"loss": 7.05351067, "epoch": 0.16666667, "global_step/max_steps": "1/5000", "elapsed_time": "1s", '
    '"remaining_time": "51m 36s", "train_speed(s/it)": 0.619339}',
    '{"train_runtime": 4.4194, "train_loss": 6.62988784, "global_step/max_steps": "20/5000", '
    '"elapsed_time": "4s", "remaining_time": "18m 19s", "train_speed(s/it)": 0.220662}',
    '{"model_parameter_info": "PeftModel: 0.6M", "best_metric": null, "global_step": 20, "memory": 0}',
]


def test_a_row_of_ms_swift() -> None:
    now = progress(read_rows([ROW, '{"eval_loss": 1.5, "global_step/max_steps": "23/60"}', "{torn"]))
    assert now == Progress(step=23, steps=60, loss=1.25, speed_s=2.0, memory_gib=14.2)
    said = "23/60  loss 1.25  2 s/step  0:01:14 left  14.2 GiB"
    assert progress_text(now, drawn=False) == said
    assert progress_text(now) == "━" * 7 + "─" * 13 + " " + said


def test_rows_that_come_one_by_one_say_the_same_as_all_at_once() -> None:
    now = None
    for row in REAL:
        now = progress(read_rows([row]), now)
    assert now == progress(read_rows(REAL)) == Progress(20, 5000, 7.05351067, 0.220662)
    assert progress_text(now, drawn=False) == "20/5000  loss 7.054  0.2207 s/step  0:18:19 left"


def test_less_is_known() -> None:
    assert progress([]) is None
    assert progress_text(Progress(step=3)) == "step 3"
    assert progress_text(Progress(step=3, speed_s=0.01)) == "step 3  100 steps/s"
    assert progress_text(Progress(step=3, speed_s=123.4)) == "step 3  123.4 s/step"


@pytest.mark.parametrize("speed", ["0.0", "NaN", "Infinity", "-1.0", "1e-320"])
def test_a_speed_that_cannot_be_breaks_nothing(speed: str) -> None:
    for name in ("train_speed(s/it)", "train_speed(iter/s)"):
        row = f'{{"global_step/max_steps": "1/9", "{name}": {speed}, "memory(GiB)": NaN}}'
        now = progress(read_rows([row]))
        assert now
        assert "1/9" in progress_text(now)


def test_a_log_gets_few_lines() -> None:
    first = Progress(step=0, steps=1000)
    assert worth_a_line(first, None, 0)
    assert not worth_a_line(Progress(step=49, steps=1000), first, 1000)
    assert worth_a_line(Progress(step=50, steps=1000), first, 10)
    assert not worth_a_line(Progress(step=900, steps=1000), first, 9)
    assert worth_a_line(first, Progress(step=500, steps=1000), 10)  # begun again
    assert worth_a_line(Progress(step=2), Progress(step=1), 10)
    assert not worth_a_line(Progress(step=1), Progress(step=1), 1000)


NUMBERS = st.none() | st.floats(min_value=1e-9, max_value=1e9)


@given(
    st.integers(0, 10**9), st.none() | st.integers(1, 10**9), NUMBERS | st.just(math.nan), NUMBERS, NUMBERS
)
def test_any_numbers_give_one_line(
    step: int, steps: int | None, loss: float | None, speed: float | None, memory: float | None
) -> None:
    text = progress_text(Progress(step, steps, loss, speed, memory))
    assert "\n" not in text
    assert text.count("━") + text.count("─") == (20 if steps else 0)
