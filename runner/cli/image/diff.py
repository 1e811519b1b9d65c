"""`build_image.py diff`: what two stacks pin differently."""

from __future__ import annotations

import click

from runner.cli import complete, options


@click.command("diff")
@click.argument("one", metavar="STACK", shell_complete=complete.stacks)
@click.argument("other", metavar="STACK", shell_complete=complete.stacks)
@click.option(
    "--arch", type=click.Choice(["arm", "x86"]), default="arm", show_default=True, help="Whose lock."
)
@click.option("--all", "whole", is_flag=True, help="Every package of the locks, not only the pins.")
@options.as_json
def command(one: str, other: str, arch: str, whole: bool, as_json: bool) -> int:
    """Compare two stacks; exit code 1 when they differ."""
    from runner.cli.table import print_table
    from runner.core.lockfile import canonical, read_lock
    from runner.core.stack import Stack
    from runner.data.stacks import load_stack, lock_of

    def versions(stack: Stack) -> dict[str, str]:
        found = {canonical(n): p.version for n, p in stack.packages.items()}
        path = lock_of(stack, arch)
        if whole and path.exists():
            lock = read_lock(path.read_text(encoding="utf-8"), path.name)
            found |= {canonical(p.name): p.version for p in lock.packages}
        return {"python": stack.python, "cann": stack.cann or "-", **found}

    a, b = versions(load_stack(one)), versions(load_stack(other))
    names = [n for n in dict.fromkeys([*a, *b]) if a.get(n) != b.get(n)]
    if as_json:
        differ = {n: [a.get(n), b.get(n)] for n in names}
        options.print_json("stack-diff/1", {"stacks": [one, other], "differ": differ})
    elif names:
        print_table(
            ("PACKAGE", one.upper(), other.upper()), [(n, a.get(n, "-"), b.get(n, "-")) for n in names]
        )
    return int(bool(names))
