"""Every ms-swift command of the example jobs is accepted by the real parser of its stack's version."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from overlays import OVERLAYS, complaints, overlay
from table_parser import complaint, parser_from

from runner.core.bind import Environment, Placement, bind
from runner.core.plan import Plan, PlannedStep, argv_of
from runner.data.stacks import load_stack

sys.path.insert(0, str(Path(__file__).parents[1]))
from golden.rewrite import job_names, plan_of, stack_of

pytestmark = pytest.mark.swift
STACKS = {"cpu", "swift-4.3-cann9.0", "swift-4.5-cann9.1"}


def commands(stack: str) -> list[tuple[str, str, list[str]]]:
    """(where, ms-swift command, its tokens) of all jobs for this stack, bound to some place."""
    found = []
    for name in job_names():
        plan = plan_of(name)
        if plan.stack == stack:
            for step in plan.steps:
                for command in bind(step, placed(plan, step), Environment()).record["commands"]:
                    program, *tokens = command["argv"]
                    if program in ("swift", "megatron"):
                        called = tokens[0] if program == "swift" else f"megatron {tokens[0]}"
                        found.append((f"{name}.{step.name}", called, tokens[1:]))
    return found


def placed(plan: Plan, here: PlannedStep) -> Placement:
    outputs = {s.name: dict.fromkeys(s.outputs, "/runs/1/a b") for s in plan.steps}
    for step in plan.steps:
        outputs[step.name].update({"port": "8001"} if step.service else {})
    return Placement(
        attempt="x.1.s.1", run={"id": "1", "name": plan.name, "dir": "/runs/1", "inside": "/inside"},
        step_dir="/runs/1/steps/s", output="/runs/1/steps/s/output", cwd="/", devices=tuple(range(16)),
        ports={"http": 8000, "master": 29500}, outputs=outputs,
        resume_from="/runs/1/checkpoint-4" if here.resumable else None,
    )  # fmt: skip


@pytest.mark.parametrize("stack", sorted(STACKS))
def test_real_parser_accepts_every_command(
    stack: str, stack_python: Path, pytestconfig: pytest.Config
) -> None:
    version = load_stack(stack).version("ms-swift")
    assert version is not None
    assert pytestconfig.cache is not None
    over = None
    if version in OVERLAYS:
        over = overlay(stack_python, pytestconfig.cache.mkdir("swift-overlays"), version)
    asked = [c for c in commands(stack) if not c[1].startswith("megatron")]
    wrong = ("control", "sft", ["--lora_rnk", "8"])
    answers = complaints(stack_python, [(c, tokens) for _, c, tokens in [*asked, wrong]], over)
    assert answers[-1] is not None, "the parser takes anything"
    assert {where: said for (where, _, _), said in zip(asked, answers[:-1], strict=True) if said} == {}
    assert asked


def test_megatron_commands_are_in_the_table() -> None:
    asked = [c for c in commands("swift-4.5-cann9.1") if c[1].startswith("megatron")]
    _, table = stack_of("swift-4.5-cann9.1")
    said = {where: complaint(parser_from(table, called), tokens) for where, called, tokens in asked}
    assert said
    assert set(said.values()) == {None}, said
    assert complaint(parser_from(table, "megatron sft"), ["--lora_rnk", "8"]), "the parser takes anything"


def test_every_ms_swift_command_of_the_jobs_is_asked_about() -> None:
    stacks = {plan_of(name).stack or "" for name in job_names()}
    assert stacks == STACKS
    assert len([c for stack in stacks for c in commands(stack)]) >= len(job_names())


def test_real_parser_takes_a_negative_number_as_it_is_rendered(stack_python: Path) -> None:
    joined, apart = argv_of({"learning_rate": -1e-5}), ["--learning_rate", "-1e-05"]
    answers = complaints(stack_python, [("sft", joined), ("sft", apart)])
    assert answers[0] is None
    assert answers[1] is not None
