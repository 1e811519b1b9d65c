"""The tables of states, and what a run's steps make of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.state import (
    ATTEMPT,
    REASONS,
    RUN,
    STEP,
    STEP_ENDS,
    STOPPED_BY,
    exit_code,
    run_may,
    run_state,
)

STATES = st.sampled_from(sorted(STEP))
ONLY_FIRST = {"HELD"}  # where a step begins that is held back at its submit


@pytest.mark.parametrize(
    ("table", "ends"),
    [(ATTEMPT, {"ENDED"}), (STEP, STEP_ENDS), (RUN, STEP_ENDS)],
    ids=["attempt", "step", "run"],
)
def test_every_state_is_reachable_and_can_end(table: dict[str, frozenset[str]], ends: frozenset[str]) -> None:
    start = next(iter(table))
    seen, left = {start, *ONLY_FIRST & set(table)}, [start, *ONLY_FIRST & set(table)]
    while left:
        for after in table[left.pop()] - seen:
            seen.add(after)
            left.append(after)
    assert seen == set(table)
    for state in table:
        reach = {state}
        for _ in table:
            reach |= {a for s in reach for a in table[s]}
        assert reach & ends, state


@given(st.lists(st.sampled_from(["WAITING", "HELD"]), min_size=1, max_size=4), st.data())
def test_a_run_goes_by_its_table_whatever_way_its_steps_go(first: list[str], data: st.DataObject) -> None:
    states = ["HELD"] * len(first) if "HELD" in first else first  # all are held, or none is
    run = run_state(states)
    assert run_may("NEW", run)
    for _ in range(12):
        if "HELD" in states and all(s in STEP_ENDS | {"HELD"} for s in states) and data.draw(st.booleans()):
            states = ["WAITING" if s == "HELD" else s for s in states]  # `release` lets go of all at once
        else:
            i = data.draw(st.integers(0, len(states) - 1))
            onward = sorted(STEP[states[i]] - ({"WAITING"} if states[i] == "HELD" else set()))
            if states[i] in STEP_ENDS and not all(s in STEP_ENDS for s in states):
                continue  # `retry` opens runs that have ended
            states[i] = data.draw(st.sampled_from(onward))
        after = run_state(states)
        assert after == run or run_may(run, after), (run, after, states)
        run = after


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
