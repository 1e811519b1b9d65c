"""`runner gc`: give disk back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runner.cli import options

if TYPE_CHECKING:
    from runner.store.db import Store

_FAILED = ("FAILED", "LOST")


@click.command("gc")
@click.option("--older", default="30d", metavar="TIME", show_default=True, help="Runs that ended before.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--keep-failed", is_flag=True, help="Keep runs that failed or were lost.")
@options.as_json
def command(older: str, dry_run: bool, keep_failed: bool, as_json: bool) -> int:
    """Remove old runs, and what a killed submit or removal left behind."""
    from runner.cli.home import open_store
    from runner.core.spec import seconds
    from runner.errors import UsageError

    try:
        age = seconds(older)
    except ValueError as e:
        raise UsageError(f"--older {older}: {e}") from e
    with open_store() as store:
        done = _collect(store, age, keep_failed=keep_failed, dry_run=dry_run)
    if as_json:
        options.print_json("gc/1", {**done, "dry_run": dry_run})
        return 5 if done["problems"] else 0
    for kept in done["kept"]:
        click.echo(f"run {kept['run']} stays: {kept['why']}", err=True)
    for problem in done["problems"]:
        click.echo(problem, err=True)
    _say(done, dry_run=dry_run)
    return 5 if done["problems"] else 0


def _collect(store: Store, age: float, *, keep_failed: bool, dry_run: bool) -> dict[str, Any]:
    import time

    from runner.errors import RunnerError
    from runner.store.remove import InUse, finish, remove_run, remove_stray, strays, why_not
    from runner.store.usage import disk_use

    now, used = time.time(), InUse(store)
    freed, problems = (0, []) if dry_run else finish(store)
    old = [r for r in store.runs(limit=-1) if r.ended is not None and now - r.ended > age]
    removed, left, kept = [], [], []
    for run in reversed([r for r in old if not (keep_failed and r.state in _FAILED)]):
        if why := why_not(store, run, used):
            kept.append({"run": run.id, "why": why})
            continue
        try:
            freed += disk_use(store.folder(run.id).path) if dry_run else remove_run(store, run, used)
            removed.append(run.id)
        except RunnerError as e:
            problems.append(e.message)
    for stray in strays(store, age):
        try:
            freed += disk_use(store.folder(stray.run).path) if dry_run else remove_stray(store, stray)
            left.append({"run": stray.run, "why": stray.why})
        except RunnerError as e:
            problems.append(e.message)
    return {"runs": removed, "strays": left, "kept": kept, "problems": problems, "bytes": freed}


def _say(done: dict[str, Any], *, dry_run: bool) -> None:
    from runner.store.usage import size_text

    runs, strays = len(done["runs"]), len(done["strays"])
    what = f"{runs} run{'' if runs == 1 else 's'}"
    what += f" and {strays} that no index knows" if strays else ""
    said = "would free" if dry_run else "freed"
    numbers = f" ({', '.join(map(str, done['runs']))})" if dry_run and runs else ""
    click.echo(f"{said} {size_text(done['bytes'])}: {what}{numbers}")
