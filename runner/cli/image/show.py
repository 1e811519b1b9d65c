"""`build_image.py show`: one stack with the source of every pin."""

from __future__ import annotations

import click

from runner.cli import complete, options


@click.command("show")
@click.argument("name", metavar="STACK", shell_complete=complete.stacks)
@options.as_json
def command(name: str, as_json: bool) -> None:
    """Show what STACK pins, why, what it breaks on purpose and which images it is built on."""
    from runner.cli.table import print_table
    from runner.core.lockfile import ARCHES, read_lock
    from runner.data.stacks import load_stack, lock_of

    stack = load_stack(name)
    paths = sorted({lock_of(stack, arch) for arch in ARCHES})
    locks = {p.name: read_lock(p.read_text(encoding="utf-8"), p.name) for p in paths if p.exists()}
    if as_json:
        found = {
            n: {"packages": len(k.packages), "unlocked": [p.name for p in k.unlocked]}
            for n, k in locks.items()
        }
        options.print_json("stack/2", {**stack.model_dump(), "locks": found})
        return
    click.echo(
        f"{stack.stack}: {stack.title}\nPython {stack.python}"
        + (f", CANN {stack.cann}" if stack.cann else "")
    )
    if stack.driver:
        paired = f", paired with {stack.driver.paired}" if stack.driver.paired else ""
        click.echo(f"driver {stack.driver.minimum} or newer{paired} ({stack.driver.source})")
    for note in stack.notes:
        click.echo(note)
    click.echo()
    rows = [
        (n, p.version, (p.commit or "")[:12] or p.index or "PyPI", p.source)
        for n, p in stack.packages.items()
    ]
    print_table(("PACKAGE", "VERSION", "FROM", "SOURCE"), rows)
    click.echo()
    bases = [(g, t.soc or "-", os, b) for g, t in stack.targets.items() for os, b in t.bases.items()]
    print_table(("FOR", "SOC", "OS", "BASE"), bases)
    for generation, target in stack.targets.items():
        if target.evidence:
            click.echo(f"{generation}: {target.evidence.strip()}")
    if stack.components:
        parts = "; ".join(f"{name} ({', '.join(some)})" for name, some in stack.components.items())
        click.echo(f"\n--without leaves out: {parts}")
    for o in stack.resolve.overrides:
        instead = o.instead or "nothing"
        click.echo(f"\noverride: {o.package} declares {o.declares}, here {instead}")
        click.echo(f"  {o.why}\n  verdict: {o.verdict}")
    for file, lock in locks.items():
        unlocked = ", ".join(f"{p.name} {p.version}" for p in lock.unlocked)
        rest = f"; without a hash: {unlocked}" if unlocked else ""
        click.echo(f"\n{file}: {len(lock.packages)} packages{rest}")
