"""Short ways to a job, its plan and its findings."""

from __future__ import annotations

from runner.cli.jobfile import arg_table
from runner.core.compile import compile_plan
from runner.core.job import Job, read_job
from runner.core.jobcheck import check_job
from runner.core.plan import Plan, PlannedStep
from runner.data.stacks import load_stack
from runner.errors import Finding, SpecError


def job_of(text: str, *sets: str) -> Job:
    return read_job(text.encode(), "job.yaml", sets)


def plan_of(text: str, *sets: str, stack: str = "swift-4.3-cann9.0", offline: bool = False) -> Plan:
    chosen = load_stack(stack)
    table = arg_table(chosen)
    assert table is not None
    known = {c: frozenset(table.names(c)) for c in table.commands}
    return compile_plan(job_of(text, *sets), chosen, known, offline=offline)


def step_of(text: str, **more: str) -> PlannedStep:
    """The last step of a job of which only `steps`, or one step's own keys, are given."""
    return plan_of(f"name: j\n{text}", **more).steps[-1]  # type: ignore[arg-type]


def findings_of(text: str, *sets: str, stack: str = "swift-4.3-cann9.0") -> list[Finding]:
    try:
        job = job_of(text, *sets)
    except SpecError as e:
        return e.findings
    chosen = load_stack(stack)
    return check_job(job, chosen, arg_table(chosen))


def said(text: str, *sets: str) -> list[str]:
    """`line:col: message` of every finding."""
    return [f"{f.line}:{f.col}: {f.message}" for f in findings_of(text, *sets)]
