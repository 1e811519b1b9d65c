"""Locks against a real resolver and index: what they prove, and what breaks the proof."""

from __future__ import annotations

import pytest

from runner.core.stack import Constraint, Override, Stack
from runner.data.stacks import load_stack, lock_of
from runner.errors import SpecError
from runner.images.lock import check_lock, make_lock

pytestmark = pytest.mark.slow
GUIDE = load_stack("swift-4.3-cann9.0")


def changed(stack: Stack, **resolve: object) -> Stack:
    return stack.model_copy(update={"resolve": stack.resolve.model_copy(update=resolve)})


@pytest.mark.parametrize(("name", "arch"), [("cpu", "x86"), ("swift-4.3-cann9.0", "arm")])
def test_the_committed_lock_breaks_no_declaration_outside_the_overrides(name: str, arch: str) -> None:
    """uv keeps every bound of every package but those that an override names, or finds no solution."""
    stack = load_stack(name)
    assert check_lock(stack, arch, lock_of(stack, arch)) == []


@pytest.mark.parametrize("override", GUIDE.resolve.overrides, ids=lambda o: f"{o.package}-{o.declares}")
def test_every_override_is_needed(override: Override) -> None:
    fewer = [o for o in GUIDE.resolve.overrides if o != override]
    with pytest.raises(SpecError, match="no solution"):
        make_lock(changed(GUIDE, overrides=fewer), "arm")


def test_an_override_of_what_is_not_declared_is_stale() -> None:
    stale = Override(package="vllm", declares="numpy<1", why="a test", verdict="a test")
    with pytest.raises(SpecError, match="vllm does not declare 'numpy<1'"):
        make_lock(changed(GUIDE, overrides=[*GUIDE.resolve.overrides, stale]), "arm")


def test_a_bound_that_cannot_hold_is_named() -> None:
    planted = Constraint(pin="peft<0.10", why="a test")
    with pytest.raises(SpecError, match="peft") as raised:
        make_lock(changed(GUIDE, constraints=[*GUIDE.resolve.constraints, planted]), "arm")
    assert "resolve.overrides" in str(raised.value.findings[0].hint)
