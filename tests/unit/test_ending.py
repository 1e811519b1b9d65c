"""What follows on the end of an attempt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.ending import LONGEST_BACKOFF_S, RETRIED, End, after, backoff_s
from runner.core.plan import PlannedStep
from runner.core.state import REASONS, STEP, STEP_ENDS

ENDS = st.builds(
    End,
    reason=st.sampled_from(REASONS),
    code=st.none() | st.integers(0, 255),
    intent=st.sampled_from([None, "user", "timeout", "dependency", "done"]),
    tries=st.integers(1, 50),
    lived_s=st.floats(0, 1e6),
    was_ready=st.booleans(),
)
STEPS = st.builds(
    PlannedStep,
    commands=st.just(()),
    name=st.just("s"),
    kind=st.just("command"),
    service=st.booleans(),
    attempts=st.integers(1, 5),
    restart=st.sampled_from(["never", "on-failure", "always"]),
    retry_on=st.none() | st.lists(st.sampled_from(RETRIED)).map(tuple),
)


def step(**more: object) -> PlannedStep:
    return PlannedStep(commands=(), name="s", kind="command", **more)  # type: ignore[arg-type]


@given(STEPS, ENDS)
def test_every_end_leads_where_the_table_allows(planned: PlannedStep, end: End) -> None:
    verdict = after(planned, end)
    assert verdict.state in STEP["ACTIVE"]
    if end.intent in ("user", "timeout", "dependency"):
        assert verdict.state in STEP_ENDS
        assert verdict.reason == end.intent
    if verdict.state == "BACKOFF":
        assert 0 < verdict.wait_s <= LONGEST_BACKOFF_S
        assert verdict.why
    if verdict.state == "SUCCEEDED":
        assert end.intent == "done" or (end.reason == "exit_code" and end.code == 0)


@pytest.mark.parametrize("reason", RETRIED)
def test_tries_are_counted_and_reasons_chosen(reason: str) -> None:
    end = End(reason, 1, None, tries=1, lived_s=1)
    assert after(step(attempts=2), end).state == "BACKOFF"
    assert after(step(attempts=1), end).state == ("LOST" if reason == "host_lost" else "FAILED")
    assert after(step(attempts=2, retry_on=()), end).state != "BACKOFF"
    assert after(step(attempts=2, retry_on=(reason,)), end).state == "BACKOFF"


@pytest.mark.parametrize("reason", ["preflight", "entry_error", "timeout", "user"])
def test_what_would_only_fail_again_is_not_retried(reason: str) -> None:
    assert after(step(attempts=9), End(reason, None, None, 1, 1)).state == "FAILED"


def test_backoff_doubles_up_to_ten_minutes() -> None:
    planned = step(backoff_s=5)
    assert [backoff_s(planned, n) for n in (1, 2, 3)] == [5, 10, 20]
    assert backoff_s(planned, 10_000) == LONGEST_BACKOFF_S


def test_a_service_that_was_ready_is_restarted_by_its_policy_alone() -> None:
    crash = End("signal", 137, None, tries=7, lived_s=3, was_ready=True)
    ended = End("exit_code", 0, None, tries=7, lived_s=3, was_ready=True)
    kept = step(service=True, keep=True, restart="on-failure")
    assert after(kept, crash).state == "BACKOFF"
    assert after(kept, ended).message == "the service ended by itself"
    assert after(step(service=True, restart="always"), ended).state == "BACKOFF"
    never_up = End("not_ready", 125, None, tries=1, lived_s=3)
    assert after(kept, never_up).state == "FAILED"
    steady = End("signal", 137, None, tries=7, lived_s=1e4, was_ready=True)
    assert after(kept, steady).wait_s == kept.backoff_s < after(kept, crash).wait_s
