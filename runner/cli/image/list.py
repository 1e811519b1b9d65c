"""`build_image.py list`: the stacks of the catalogue."""

from __future__ import annotations

import click

from runner.cli import options


@click.command("list")
@click.option("--generation", metavar="NAME", help="Only stacks for A2, A3, 950 or cpu.")
@options.as_json
def command(generation: str | None, as_json: bool) -> None:
    """List the stacks, for which hardware they are, and what is in them; * marks the one taken by default."""
    from runner.cli.table import print_table
    from runner.data.stacks import load_stack, stack_names

    stacks = [load_stack(name) for name in stack_names()]
    if generation:
        stacks = [s for s in stacks if generation.lower() in [g.lower() for g in s.generations]]
    if as_json:
        options.print_json("stacks/2", {"stacks": [s.model_dump() for s in stacks]})
        return
    rows = []
    for s in stacks:
        hardware = " ".join(f"{g}*" if g in s.default_for else g for g in s.generations)
        pins = [s.version(n) or "-" for n in ("torch", "torch-npu", "vllm-ascend", "ms-swift")]
        rows.append((s.stack, hardware, s.cann or "-", s.python, *pins))
    print_table(("STACK", "FOR", "CANN", "PYTHON", "TORCH", "TORCH_NPU", "VLLM-ASCEND", "MS-SWIFT"), rows)
