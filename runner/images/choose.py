"""Which stack and generation a person means, from whichever words were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from runner.core.hardware import Hardware, Product, generation_of
from runner.core.stack import Stack
from runner.core.support import product_of, same_version
from runner.core.wording import did_you_mean, listing
from runner.errors import UsageError


@dataclass(frozen=True)
class Asked:
    """What was given; None where nothing was."""

    generation: str | None = None
    soc: str | None = None
    stack: str | None = None
    python: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)  # package -> version, from modelscope's flags


def chosen_generation(asked: Asked, known: Sequence[Hardware], unsupported: Sequence[Product]) -> str | None:
    """`A2`, `A3`, `950` or `cpu`; None when nothing tells; UsageError for one that cannot be."""
    for word in filter(None, (asked.generation, asked.soc)):
        if product := product_of(word, unsupported):
            message = f"{word} is {product.product}: {product.reason} ({product.source})"
            raise UsageError(message, hint=f"supported are {listing([h.generation for h in known])}")
    names = [*(h.generation for h in known), "cpu"]
    if asked.generation:
        named = next((n for n in names if n.lower() == asked.generation.lower()), None)
        if named is None:
            message = f"there is no generation '{asked.generation}'{did_you_mean(asked.generation, names)}"
            raise UsageError(message, hint=f"generations: {listing(names)}")
        return named
    if asked.soc:
        of = generation_of(asked.soc, known)
        if of is None:
            socs = [s for h in known for s in h.socs]
            message = (
                f"no generation has the SOC_VERSION '{asked.soc}'{did_you_mean(asked.soc.lower(), socs)}"
            )
            raise UsageError(message, hint="; ".join(f"{h.generation}: {listing(h.socs, 3)}" for h in known))
        return of.generation
    return None


def chosen_stack(asked: Asked, generation: str, stacks: Sequence[Stack]) -> Stack:
    """The stack that was named, else the generation's own, else the first that has what was asked for."""
    if asked.stack:
        return next(s for s in stacks if s.stack == asked.stack)
    ordered = sorted(stacks, key=lambda s: generation not in s.default_for)
    fitting = [s for s in ordered if generation in s.generations]
    for stack in fitting:
        if not _differs(stack, asked):
            return stack
    nearest = fitting[0]
    message = f"no stack for {generation} has {_differs(nearest, asked)}"
    raise UsageError(
        message, hint="`python build_image.py list` shows all; a stack is a file of pins to copy"
    )


def _differs(stack: Stack, asked: Asked) -> str:
    wrong = []
    if asked.python and not stack.resolve.universal and _minor(asked.python) != _minor(stack.python):
        wrong.append(f"Python {_minor(asked.python)} (but {stack.python})")
    for name, wanted in asked.versions.items():
        has = stack.version(name)
        if has is None or not same_version(has, wanted):
            wrong.append(f"{name} {wanted} (but {has or 'none'})")
    return ", ".join(wrong)


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])
