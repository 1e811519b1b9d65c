"""What steps may take together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.core.limits import Limits, never_fits, shortage
from runner.core.plan import Plan, PlannedStep


def step(cpus: float | None = None, memory: int | None = None) -> PlannedStep:
    return PlannedStep(commands=(), name="s", kind="command", cpus=cpus, memory=memory)


SHARES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


@given(SHARES, st.integers(1, 9), st.integers(1, 9))
def test_never_more_than_there_is(asked: list[tuple[int, int]], cpus: int, memory: int) -> None:
    limits, living = Limits(cpus=cpus, memory=memory), []
    for c, m in asked:
        if shortage(limits, living, step(c or None, m or None)) is None:
            living.append(step(c or None, m or None))
    assert sum(s.cpus or 0 for s in living) <= cpus
    assert sum(s.memory or 0 for s in living) <= memory


def test_who_asks_for_nothing_never_waits() -> None:
    assert shortage(Limits(cpus=1, memory=1), [step(1, 1)], step()) is None


def test_it_says_what_is_missing() -> None:
    assert shortage(Limits(cpus=4), [step(3)], step(2)) == "needs 2 cpus, and 1 of 4 are free"
    plan = Plan(name="p", stack=None, image=None, generation="cpu", steps=(step(memory=8 << 30),))
    said = never_fits(Limits(memory=4 << 30), plan)
    assert said == "step 's' needs 8.0 GiB of memory, and 4.0 of 4.0 are free"
