"""`runner check`: everything that is wrong with a job file, before anything starts."""

from __future__ import annotations

import click

from runner.cli import complete, options
from runner.errors import Finding, SpecError, UsageError


@click.command("check")
@click.argument("files", nargs=-1, required=True, shell_complete=complete.files)
@options.sets
@options.stack
@options.offline
@options.as_json
def command(
    files: tuple[str, ...], sets: tuple[str, ...], stack: str | None, offline: bool, as_json: bool
) -> int:
    """Say everything that is wrong with job FILES: place, reason, and what was probably meant."""
    from runner.cli.jobfile import load_job
    from runner.core.yamltext import finding_json, format_finding

    found: list[Finding] = []
    for file in files:
        try:
            found += load_job(file, sets, stack, offline=offline).warnings
        except SpecError as e:
            found += e.findings
        except UsageError as e:
            found.append(Finding(e.code, e.message, hint=e.hint, file=file))
    wrong = sum(f.severity == "error" for f in found)
    if as_json:
        options.print_json("check/1", {"ok": not wrong, "findings": [finding_json(f) for f in found]})
        return 2 if wrong else 0
    for f in found:
        click.echo(format_finding(f), err=True)
    if not wrong:
        click.echo(f"{', '.join(files)}: ok")
    return 2 if wrong else 0
