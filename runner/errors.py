"""What can go wrong, as types: every error knows its code, its next step and its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One thing a check has to say, at one place; line and col are 1-based, 0 when there is no place."""

    code: str
    message: str
    severity: Severity = "error"
    hint: str | None = None
    file: str = ""
    line: int = 0
    col: int = 0
    path: str = ""  # where in the document, e.g. "steps[1].args.lora_rank"
    excerpt: str = ""  # the source lines with a caret, ready to print


class RunnerError(Exception):
    """The root of all errors that a person is told about."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RunnerError):
    """The command line cannot be taken as it is."""

    code = "usage"
    exit_code = 2


class SpecError(RunnerError):
    """A file that a person wrote is wrong; all that is wrong with it comes at once."""

    code = "spec"
    exit_code = 2

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(f.message for f in findings) or "the file cannot be used")
        self.findings = tuple(findings)


class HostError(RunnerError):
    """This host cannot run it."""

    code = "host"
    exit_code = 3


class NoSuchRunError(RunnerError):
    """There is no run of that name or number."""

    code = "no_such_run"
    exit_code = 4


class UnreachableError(RunnerError):
    """A backend, a host or the state folder is out of reach."""

    code = "unreachable"
    exit_code = 5
