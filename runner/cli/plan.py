"""`runner plan`: the exact command of every step."""

from __future__ import annotations

import click

from runner.cli import complete, options


@click.command("plan")
@click.argument("file", required=False, shell_complete=complete.files)
@options.sets
@options.stack
@options.offline
@options.as_json
@click.option("--inside", is_flag=True, help="Print the folder of the scripts that ship with the runner.")
def command(
    file: str | None, sets: tuple[str, ...], stack: str | None, offline: bool, as_json: bool, inside: bool
) -> None:
    """Print the command of every step of job FILE, ready to copy, with a reason for what was added."""
    if inside:
        from runner.files import INSIDE

        click.echo(str(INSIDE))
        return
    if file is None:
        raise click.UsageError("name the job file")
    from runner.cli.jobfile import load_job

    loaded = load_job(file, sets, stack, offline=offline)
    if as_json:
        click.echo(loaded.plan.shown().model_dump_json(indent=1))
        return
    from runner.core.shelltext import shell_text

    click.echo(shell_text(loaded.plan), nl=False)
    if told := loaded.plan.shown().notify:
        click.echo(f"\n# told of the end: {told.url or told.url_env} ({told.kind})")
