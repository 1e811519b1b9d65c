"""`build_image.py lock`: resolve a stack, and pin every package by hash."""

from __future__ import annotations

import click

from runner.cli import complete, options


@click.command("lock")
@click.argument("stacks", nargs=-1, metavar="[STACK]...", shell_complete=complete.stacks)
@click.option("--arch", type=click.Choice(["x86", "arm"]), help="Only this architecture.")
@click.option("--check", is_flag=True, help="Write nothing: say what of the lock no longer resolves.")
@options.as_json
def command(stacks: tuple[str, ...], arch: str | None, check: bool, as_json: bool) -> int:
    """Resolve STACKs (all without one) for both architectures and write Dockerfiles/locks."""
    from runner.core.lockfile import ARCHES, UNLOCKED, write_lock
    from runner.data.stacks import load_stack, lock_of, stack_names
    from runner.files import write_atomic
    from runner.images.lock import check_lock, head_of, make_lock

    told: list[dict[str, object]] = []
    wrong = 0
    for stack in [load_stack(n) for n in stacks or stack_names()]:
        arches = ["x86"] if stack.resolve.universal else [arch] if arch else list(ARCHES)
        for one in arches:
            path = lock_of(stack, one)
            click.echo(f"{path.stem}: resolving", err=True)
            if check:
                gone = check_lock(stack, one, path)
                wrong += bool(gone)
                told.append({"lock": path.name, "gone": gone})
                text = "; ".join(gone) if gone else "resolves as it is"
            else:
                lock = make_lock(stack, one)
                write_atomic(path, write_lock(lock, head_of(stack, one)))
                unlocked = [f"{p.name}=={p.version}" for p in lock.unlocked]
                told.append({"lock": path.name, "packages": len(lock.packages), "unlocked": unlocked})
                text = f"{len(lock.packages)} packages"
                text += f"; {UNLOCKED}: {', '.join(unlocked)}" if unlocked else ""
            if not as_json:
                click.echo(f"{path.stem}: {text}")
    if as_json:
        options.print_json("locks/1", {"locks": told})
    return int(wrong > 0)
