"""The states of attempts, steps and runs, and the one table that says which may follow which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ATTEMPT: Mapping[str, frozenset[str]] = {
    "STARTING": frozenset({"RUNNING", "STOPPING", "COLLECTING", "UNKNOWN"}),
    "RUNNING": frozenset({"READY", "STOPPING", "COLLECTING", "UNKNOWN"}),
    "READY": frozenset({"STOPPING", "COLLECTING", "UNKNOWN"}),
    "STOPPING": frozenset({"COLLECTING", "UNKNOWN"}),
    "UNKNOWN": frozenset({"RUNNING", "READY", "STOPPING", "COLLECTING"}),
    "COLLECTING": frozenset({"ENDED"}),
    "ENDED": frozenset(),
}
STEP: Mapping[str, frozenset[str]] = {
    "WAITING": frozenset({"QUEUED", "CANCELLED", "SKIPPED", "FAILED"}),
    "HELD": frozenset({"WAITING", "CANCELLED", "FAILED"}),
    "QUEUED": frozenset({"ACTIVE", "CANCELLED", "SKIPPED", "FAILED"}),
    "ACTIVE": frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "LOST", "BACKOFF"}),
    "BACKOFF": frozenset({"QUEUED", "CANCELLED", "FAILED"}),
    # the ends; only `runner retry` opens one again
    "SUCCEEDED": frozenset({"WAITING"}),
    "FAILED": frozenset({"WAITING"}),
    "CANCELLED": frozenset({"WAITING"}),
    "SKIPPED": frozenset({"WAITING"}),
    "LOST": frozenset({"WAITING"}),
}
STEP_ENDS = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED", "LOST"})
_RUN_ENDS = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "LOST"})
RUN: Mapping[str, frozenset[str]] = {
    "NEW": frozenset({"QUEUED", "HELD"}),  # its folder is being written
    "HELD": frozenset({"QUEUED", "RUNNING", "CANCELLED", "FAILED"}),
    "QUEUED": frozenset({"RUNNING"}) | _RUN_ENDS,
    "RUNNING": frozenset({"QUEUED"}) | _RUN_ENDS,  # its only open step waits for another try
    **{end: frozenset({"QUEUED", "RUNNING"}) for end in sorted(_RUN_ENDS)},
}
REASONS = (
    "exit_code", "signal", "oom", "timeout", "user", "port_taken", "not_ready", "entry_error", "device_fault",
    "host_lost", "daemon_restart", "preflight", "dependency", "done",
)  # fmt: skip
STOPPED_BY = {  # intent of a stop -> the step's end, whatever its exit code, and what is said of it
    "user": ("CANCELLED", None),
    "timeout": ("FAILED", "the run took longer than its timeout"),
    "dependency": ("FAILED", "a service that it needs has ended"),
}


def step_may(before: str, after: str) -> bool:
    """Whether a step may go from one state to the other."""
    return after in STEP[before]


def attempt_may(before: str, after: str) -> bool:
    """Whether an attempt may go from one state to the other."""
    return after in ATTEMPT[before]


def run_may(before: str, after: str) -> bool:
    """Whether a run may go from one state to the other."""
    return after in RUN[before]


def run_state(steps: Iterable[str]) -> str:
    """A run's state follows from its steps': while one is open the run is HELD, QUEUED or RUNNING."""
    states = list(steps)
    if all(s in STEP_ENDS for s in states):
        for end in ("LOST", "FAILED", "CANCELLED"):
            if end in states:
                return end
        return "SUCCEEDED"
    if any(s in ("ACTIVE", "BACKOFF") or s in STEP_ENDS for s in states):
        return "RUNNING"
    return "HELD" if "HELD" in states else "QUEUED"


def exit_code(state: str, reason: str | None, code: int | None, signal: int | None) -> int:
    """The exit code of `runner wait` for the first step that did not succeed (0 when all did)."""
    if state == "SUCCEEDED":
        return 0
    if state == "LOST":
        return 5
    if reason == "timeout":
        return 124
    if state == "CANCELLED" or reason == "user":
        return 130
    match reason:
        case "preflight" | "port_taken":
            return 3
        case "signal" | "oom" if signal:
            return 128 + signal
    return code if code else 1
