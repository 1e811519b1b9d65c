"""`runner submit`: check, write down, start, and stay with it as long as one likes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runner.cli import complete, options

if TYPE_CHECKING:
    from pathlib import Path

    from runner.store.db import Store


@click.command("submit")
@click.argument("files", nargs=-1, metavar="FILE...", shell_complete=complete.files)
@click.option(
    "--from",
    "again",
    metavar="RUN",
    shell_complete=complete.runs,
    help="Run a stored run anew, with its files as they were.",
)
@options.sets
@options.stack
@options.offline
@click.option(
    "--group", metavar="NAME", help="Put these runs into one group.", shell_complete=complete.groups
)
@click.option(
    "--priority", type=click.IntRange(-100, 100), help="Instead of the job's; the higher one first."
)
@click.option("--hold", is_flag=True, help="Start nothing before `runner release`.")
@options.stay
@options.junit
@options.as_json
def command(
    files: tuple[str, ...],
    again: str | None,
    sets: tuple[str, ...],
    stack: str | None,
    offline: bool,
    group: str | None,
    priority: int | None,
    hold: bool,
    how: str | None,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Start the job in each FILE. It goes on when this command or the terminal is gone."""
    from dataclasses import replace

    from runner.cli.asked import from_files, from_run, submit_all
    from runner.cli.home import open_store
    from runner.cli.jobfile import Choices

    if bool(files) == bool(again):
        raise click.UsageError("name job files, or a run with --from")
    how = options.chosen_stay(how, quiet=as_json or hold)
    if junit and (how == "detach" or hold):
        raise click.UsageError("--junit needs --wait or --follow: it tells of the end")
    chosen = Choices(sets, stack, offline)
    groups = from_files(files, chosen, group) if files else []
    with open_store() as store:
        groups = groups or [from_run(store, str(again), chosen, group)]
        if priority is not None:
            groups = [[replace(a, priority=priority) for a in asked] for asked in groups]
        runs = submit_all(store, [[replace(a, held=hold) for a in asked] for asked in groups])
        _say(store, runs, how, as_json=as_json)
        if hold:
            click.echo("held; `runner release` lets them go", err=True)
            return 0
        return stay_together(store, runs, how, quiet=as_json, junit=junit)


def _say(store: Store, runs: list[int], how: str, *, as_json: bool) -> None:
    found = [store.run(r) for r in runs]
    if as_json:
        made = [
            {"run": r.id, "name": r.name, "group": r.grp, "folder": str(store.folder(r.id).path)}
            for r in found
        ]
        options.print_json("submitted/2", {"runs": made})
        return
    for r in found:
        more = f": {r.name} in {store.folder(r.id).path}" if how != "detach" and len(runs) == 1 else ""
        click.echo(f"run {r.id}{more}")
    for group in dict.fromkeys(r.grp for r in found if r.grp):
        click.echo(f"group {group}; `runner show --group {group}` compares them", err=True)


def stay_together(
    store: Store, runs: list[int], how: str, *, quiet: bool = False, junit: Path | None = None
) -> int:
    """Stay with one run, or wait for several in order; the exit code is the first that is not 0."""
    code = _stay_with_each(store, runs, how, quiet=quiet)
    if junit:
        from runner.cli.junit import write_junit

        write_junit(store, runs, junit)
    return code


def _stay_with_each(store: Store, runs: list[int], how: str, *, quiet: bool) -> int:
    if len(runs) == 1 or how == "detach":
        return stay(store, runs[0], how, quiet=quiet)
    codes = []
    for run in runs:
        code = stay(store, run, "wait", quiet=quiet)
        if code == 130 and store.run(run).ended is None:
            return 130  # Ctrl-C
        codes.append(code)
    return next((c for c in codes if c), 0)


def stay(store: Store, run: int, how: str, *, quiet: bool = False) -> int:
    """Follow, wait for, or leave a run; Ctrl-C leaves it running and says how to come back."""
    from runner.cli.follow import Follower, wait_run
    from runner.cli.home import attended
    from runner.cli.leaving import detached_by_ctrl_c
    from runner.cli.outcome import is_over, last_words, outcome
    from runner.cli.screen import Screen

    if how == "detach":
        return 0
    screen = Screen(to_stderr=quiet)
    over = attended(store, lambda: is_over(store, run))
    try:
        if how == "follow":
            Follower(store, run, screen).follow(over)
        else:
            wait_run(store, run, over)
    except KeyboardInterrupt:
        stopped = detached_by_ctrl_c(store, run)
        return stopped or (0 if how == "follow" else 130)  # who waits for a code gets none
    if how == "wait":
        last_words(store, run)
    return outcome(store, run)
