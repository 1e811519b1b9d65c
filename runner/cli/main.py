"""The command line: names the commands, and is the only place that prints errors and exits."""

from __future__ import annotations

import contextlib
import gc
import sys
from importlib import import_module
from typing import Any, ClassVar, NoReturn

import click

from runner.errors import RunnerError, SpecError

COMMANDS = {
    "check": "say everything that is wrong with a job file",
    "plan": "print the exact command of every step, with reasons",
    "submit": "start a job",
    "ps": "list runs",
    "show": "one run: its steps, outputs and results",
    "logs": "what the steps print",
    "wait": "wait for a run and return its exit code",
    "stop": "stop a run; training saves a checkpoint first",
    "rm": "remove runs, with all that they left on the disk",
    "gc": "remove old runs, and what was left half-written",
    "retry": "another try for what did not succeed",
    "release": "let a held run go",
    "exec": "run a command where a step runs",
    "shell": "open a shell where a step runs",
    "recover": "make the index anew from the run folders",
    "stack": "list, install and adopt stacks of pinned packages",
    "site": "show or make the site file",
    "schema": "print the JSON schema of a job file",
    "completion": "print the script that completes commands in bash, zsh or fish",
}


class LazyGroup(click.Group):
    """Imports a command only when it is used, so that --help is instant."""

    table: ClassVar[dict[str, str]] = COMMANDS
    package = "runner.cli"

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of a run's life."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command from its own file."""
        if cmd_name not in self.table:
            return None
        command: click.Command = import_module(f"{self.package}.{cmd_name.replace('-', '_')}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """With a suggestion for a mistyped command."""
        mistyped = args and not args[0].startswith("-") and args[0] not in self.table
        if mistyped and not ctx.resilient_parsing:
            from runner.core.wording import did_you_mean

            ctx.fail(f"there is no command '{args[0]}'{did_you_mean(args[0], self.table)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """From the table, without importing anything."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(n, help=what) for n, what in self.table.items() if n.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.table.items()))


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="ascend-runner", prog_name="runner")
def cli() -> None:
    """Run ms-swift training, inference and serving jobs on Ascend NPUs, or on the CPU."""


def main() -> NoReturn:
    """Run the command line and exit with one of the documented codes."""
    run(cli, "runner")


def run(command: click.Command, name: str) -> NoReturn:
    """Run one command line under the name that messages give it."""
    gc.set_threshold(100_000)  # loading modules makes no garbage that is worth looking for
    try:
        code = command.main(prog_name=name, standalone_mode=False)
        _exit(code if isinstance(code, int) else 0)
    except click.ClickException as e:
        e.show()
        _exit(2)
    except click.Abort:
        _exit(130)
    except SpecError as e:
        _show_findings(e)
        _exit(e.exit_code)
    except RunnerError as e:
        click.echo(f"{name.removesuffix('.py')}: {e.message}", err=True)
        if e.hint:
            click.echo(f"  hint: {e.hint}", err=True)
        _exit(e.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        _exit(141)


def _show_findings(error: SpecError) -> None:
    from runner.core.yamltext import format_finding

    for found in error.findings:
        click.echo(format_finding(found), err=True)


def _exit(code: int) -> NoReturn:
    import os

    with contextlib.suppress(BrokenPipeError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)  # to take all modules down again would cost as much as a third of loading them


if __name__ == "__main__":
    main()
