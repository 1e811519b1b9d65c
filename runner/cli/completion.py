"""`runner completion`: the script that lets a shell complete commands, options and runs."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL. For bash: eval "$(runner completion bash)" in ~/.bashrc."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    script = made(ctx.find_root().command, {}, "runner", "_RUNNER_COMPLETE").source()
    # fish sorts by the alphabet unless it is told not to, and runs come newest first
    click.echo(script.replace("complete --no-files", "complete --keep-order --no-files"))
