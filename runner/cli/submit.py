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
        if how == "detach":
            return 0
        from runner.cli.stay import stay

        return stay(store, runs, how, quiet=as_json, junit=junit)


def _say(store: Store, runs: list[int], how: str, *, as_json: bool) -> None:
    from shlex import quote

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
        click.echo(f"group {group}; `runner show --group {quote(group)}` compares them", err=True)
