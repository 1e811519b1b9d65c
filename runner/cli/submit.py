"""`runner submit`: check, write down, start, and stay with it as long as one likes."""

from __future__ import annotations

import click

from runner.cli import options


@click.command("submit")
@click.argument("file")
@options.sets
@options.stack
@options.offline
@click.option(
    "--follow",
    "how",
    flag_value="follow",
    help="Print what the steps print until the end (on a terminal the default).",
)
@click.option(
    "--wait", "how", flag_value="wait", help="Wait for the end in silence; the exit code is the run's."
)
@click.option("--detach", "how", flag_value="detach", help="Only start it.")
@options.as_json
def command(
    file: str, sets: tuple[str, ...], stack: str | None, offline: bool, how: str | None, as_json: bool
) -> int:
    """Start job FILE. It goes on when this command or the terminal is gone."""
    import os

    from runner.cli.home import open_store, revive, set_up
    from runner.cli.jobfile import load_job
    from runner.core.yamltext import format_finding
    from runner.engine import submit

    loaded = load_job(file, sets, stack, offline=offline)
    for warning in loaded.warnings:
        click.echo(format_finding(warning), err=True)
    how = how or ("follow" if os.isatty(1) and not as_json else "detach")
    with open_store() as store:
        backend, _ = set_up(store.home)
        backend.environment(loaded.plan)  # HostError now rather than a failed step later
        copy = loaded.job.spec.snapshot
        run = submit(store, backend, loaded.plan, loaded.raw, loaded.path, copy=copy)
        revive(store)
        if as_json:
            options.print_json(
                "submitted/1", {"run": run, "name": loaded.plan.name, "folder": str(store.folder(run).path)}
            )
        else:
            click.echo(
                f"run {run}"
                if how == "detach"
                else f"run {run}: {loaded.plan.name} in {store.folder(run).path}"
            )
        return stay(store, run, how, quiet=as_json)


def stay(store: object, run: int, how: str, *, quiet: bool = False) -> int:
    """Follow, wait for, or leave a run; Ctrl-C leaves it running and says how to come back."""
    from runner.cli.follow import Follower, wait_run
    from runner.cli.outcome import is_over, outcome
    from runner.store.db import Store

    assert isinstance(store, Store)
    if how == "detach":
        return 0
    try:
        if how == "follow":
            Follower(store, run, lambda line: click.echo(line, err=quiet)).follow(lambda: is_over(store, run))
        else:
            wait_run(store, run, lambda: is_over(store, run))
    except KeyboardInterrupt:
        click.echo(
            f"\nrun {run} goes on; `runner logs -f {run}` follows it again, `runner stop {run}` ends it",
            err=True,
        )
        return 0 if how == "follow" else 130  # who waits for a code gets none
    return outcome(store, run)
