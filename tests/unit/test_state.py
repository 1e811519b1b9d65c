"""The tables of states, and what a run's steps make of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.state import ATTEMPT, REASONS, STEP, STEP_ENDS, STOPPED_BY, exit_code, run_state

STATES = st.sampled_from(sorted(STEP))


@pytest.mark.parametrize("table", [ATTEMPT, STEP], ids=["attempt", "step"])
def test_every_state_is_reachable_and_can_end(table: dict[str, frozenset[str]]) -> None:
    start = next(iter(table))
    seen, left = {start}, [start]
    while left:
        for after in table[left.pop()] - seen:
            seen.add(after)
            left.append(after)
    assert seen == set(table)
    ends = {s for s, after in table.items() if not after}
    for state in table:
        reach = {state}
        for _ in table:
            reach |= {a for s in reach for a in table[s]}
        assert reach & ends, state


@given(st.lists(STATES, min_size=1))
def test_a_run_has_ended_exactly_when_all_its_steps_have(states: list[str]) -> None:
    whole = run_state(states)
    assert (whole in STEP_ENDS) == all(s in STEP_ENDS for s in states)
    assert (whole == "SUCCEEDED") <= (not {"FAILED", "LOST", "CANCELLED"} & set(states))
    assert run_state(reversed(states)) == whole


@given(st.sampled_from(sorted(STEP_ENDS - {"SUCCEEDED"})), st.sampled_from(REASONS),
       st.none() | st.integers(0, 255), st.none() | st.integers(1, 64))  # fmt: skip
def test_no_failure_is_zero(state: str, reason: str, code: int | None, number: int | None) -> None:
    assert 0 < exit_code(state, reason, code, number) < 256
    assert exit_code("SUCCEEDED", reason, code, number) == 0


@pytest.mark.parametrize(
    ("state", "reason", "code", "number", "expected"),
    [
        ("FAILED", "exit_code", 7, None, 7),
        ("FAILED", "signal", 137, 9, 137),
        ("FAILED", "timeout", 0, None, 124),
        ("CANCELLED", "user", 0, None, 130),
        ("CANCELLED", "timeout", None, None, 124),
        ("FAILED", "preflight", None, None, 3),
        ("FAILED", "port_taken", 125, None, 3),
        ("LOST", "host_lost", None, None, 5),
    ],
)
def test_exit_codes(state: str, reason: str, code: int | None, number: int | None, expected: int) -> None:
    assert exit_code(state, reason, code, number) == expected


def test_a_stop_ends_a_step_as_the_table_allows() -> None:
    assert {end for end, _ in STOPPED_BY.values()} <= STEP["ACTIVE"]
    assert set(STOPPED_BY) <= set(REASONS)
