"""Log groups of CI systems: each step's output folded under its name."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Sequence
from typing import Protocol

from runner.cli.screen import Screen


class LogGroups(Protocol):
    """One group is open at a time."""

    def open(self, step: str) -> None:
        """Fold what follows under this step, unless it is open already."""
        ...

    def close(self) -> None:
        """End the group that is open, if there is one."""
        ...

    def error(self, step: str, message: str) -> None:
        """Say that a step has failed where the CI system shows it."""
        ...


def log_groups(screen: Screen) -> LogGroups | None:
    """The groups of the CI system that shows this; None in none, in one without groups, and for a file."""
    if stat.S_ISREG(os.fstat(screen.goes_to()).st_mode):
        return None
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return _GitHub(screen)
    return _GitLab(screen) if os.environ.get("GITLAB_CI") == "true" else None


def quoted(lines: Sequence[str]) -> list[str]:
    """Lines of a log, on GitHub between words that keep it from taking any of them for a command."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return list(lines)
    token = os.urandom(16).hex()
    return [f"::stop-commands::{token}", *lines, f"::{token}::"]


def one_line(text: str) -> str:
    """Text from elsewhere in a line of ours; GitHub takes its older commands from anywhere in one."""
    return " ".join(text.split()).replace("##[", "# #[")


class _GitHub:
    """docs.github.com, "Workflow commands for GitHub Actions"; while stopped, a log cannot give commands."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._token: str | None = None
        self._step: str | None = None

    def open(self, step: str) -> None:
        if step != self._step:
            self.close()
            self._step, self._token = step, os.urandom(16).hex()
            self._screen.say(f"::group::{step}")
            self._screen.say(f"::stop-commands::{self._token}")

    def close(self) -> None:
        if self._step is not None:
            self._screen.say(f"::{self._token}::")
            self._screen.say("::endgroup::")
            self._step = None

    def error(self, step: str, message: str) -> None:
        text = one_line(message).replace("%", "%25")
        self._screen.say(f"::error title=step {step}::{text}")


class _GitLab:
    """docs.gitlab.com, "Job logs", custom collapsible sections."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._step: str | None = None

    def open(self, step: str) -> None:
        if step != self._step:
            self.close()
            self._step = step
            self._screen.say(f"\x1b[0Ksection_start:{time.time():.0f}:{_section(step)}\r\x1b[0K{step}")

    def close(self) -> None:
        if self._step is not None:
            self._screen.say(f"\x1b[0Ksection_end:{time.time():.0f}:{_section(self._step)}\r\x1b[0K")
            self._step = None

    def error(self, step: str, message: str) -> None:
        """GitLab has no such line; the story says it."""


def _section(step: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_.-]", "_", step)
