"""`runner exec`: a command where a step runs, with its environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import click

from runner.cli import complete


@click.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--step",
    metavar="NAME",
    shell_complete=complete.steps,
    help="This step (else the one that runs, or the last that did).",
)
@click.argument("run", shell_complete=complete.runs)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def command(step: str | None, run: str, words: tuple[str, ...]) -> None:
    """Run COMMAND with the environment, programs and folder of a step of RUN; its exit code is ours."""
    enter(run, step, words[1:] if words[0] == "--" and len(words) > 1 else words)


def enter(run: str | None, step: str | None, words: Sequence[str]) -> NoReturn:
    """Become the command; UsageError when no step has started, HostError when it cannot be executed."""
    import os

    from runner.cli.home import open_store, set_up
    from runner.core.wording import did_you_mean
    from runner.errors import HostError, UsageError
    from runner.launch import attempt_folder
    from runner.store.memory import held_environ

    with open_store() as store:
        found = store.find(run)
        names = [s.name for s in store.steps(found.id)]
        if step is not None and step not in names:
            known = "steps: " + ", ".join(names)
            raise UsageError(f"run {found.id} has no step '{step}'{did_you_mean(step, names)}", hint=known)
        attempts = store.attempts(found.id, step)
        if not attempts:
            raise UsageError(f"no step of run {found.id} has started yet")
        chosen = max(attempts, key=lambda a: (a.state != "ENDED", a.started))
        backend = set_up(store.home).backend
        environ = {**(held_environ(store.home, found.id) or backend.inherited(os.environ))}
        argv, env, folder = backend.inside(attempt_folder(store, chosen), words, environ)
    env |= {k: os.environ[k] for k in ("TERM", "COLORTERM") if k in os.environ}
    os.chdir(folder)
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as e:
        raise HostError(f"cannot run {argv[0]}: {e.strerror}") from e
