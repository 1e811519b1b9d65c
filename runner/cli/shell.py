"""`runner shell`: a shell where a step runs, with its environment."""

from __future__ import annotations

import click

from runner.cli import complete


@click.command("shell")
@click.argument("run", required=False, shell_complete=complete.runs)
@click.option(
    "--step",
    metavar="NAME",
    shell_complete=complete.steps,
    help="This step (else the one that runs, or the last that did).",
)
def command(run: str | None, step: str | None) -> None:
    """Open a shell with the environment, programs and folder of a step of RUN (the newest without one)."""
    import os
    import shutil

    from runner.cli.exec import enter

    enter(run, step, [shutil.which(os.environ.get("SHELL") or "bash") or "sh"])
