"""`runner logs`: what the steps print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runner.cli import complete

if TYPE_CHECKING:
    from runner.store.db import Store


@click.command("logs")
@click.argument("run", required=False, shell_complete=complete.runs)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
@click.option("--step", metavar="NAME", shell_complete=complete.steps, help="Only this step.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines.")
def command(run: str | None, follow: bool, step: str | None, tail: int | None) -> int:
    """Print what the steps of RUN (the newest run without one) print."""
    from runner.cli.follow import Follower
    from runner.cli.home import attended, open_store
    from runner.cli.leaving import detached_by_ctrl_c
    from runner.cli.screen import Screen
    from runner.core.wording import did_you_mean
    from runner.errors import UsageError

    with open_store() as store:
        found = store.find(run)
        names = [s.name for s in store.steps(found.id)]
        if step is not None and step not in names:
            raise UsageError(
                f"run {found.id} has no step '{step}'{did_you_mean(step, names)}",
                hint="steps: " + ", ".join(names),
            )
        screen = Screen()
        follower = Follower(store, found.id, screen, step)
        if tail is None:
            follower.print_new()
        else:
            follower.skip()
            for line in _last(store, found.id, step, tail):
                screen.say(line)
        if follow:
            try:
                follower.follow(attended(store, lambda: store.has_ended(found.id)))
            except KeyboardInterrupt:
                screen.done()
                return detached_by_ctrl_c(store, found.id) or 0
        screen.done()
        return 0


def _last(store: Store, run: int, step: str | None, count: int) -> list[str]:
    """The last lines of the newest attempts, those of several steps with the step's name in front."""
    from runner.cli.tail import last_lines

    attempts = store.attempts(run, step)
    several = step is None and len(store.steps(run)) > 1
    width = max((len(a.step) for a in attempts), default=0)
    lines: list[str] = []
    for attempt in reversed(attempts):
        path = store.folder(run).attempt(attempt.step, attempt.n) / "log.txt"
        front = f"{attempt.step:<{width}} | " if several else ""
        lines = [front + line for line in last_lines(path, count - len(lines))] + lines
        if len(lines) >= count:
            break
    return lines
