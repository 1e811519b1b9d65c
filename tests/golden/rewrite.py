"""The plan of every example job, as it is committed beside this file; run it to write them anew."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from runner.cli.jobfile import arg_table
from runner.core.compile import compile_plan
from runner.core.job import read_job
from runner.core.jobcheck import check_job
from runner.core.lint import ArgTable
from runner.core.plan import Plan
from runner.core.shelltext import shell_text
from runner.core.stack import Stack
from runner.data.stacks import load_stack

HERE = Path(__file__).parent
JOBS = HERE.parent.parent / "jobs"
SETS = {  # params that a job leaves to its user
    "infer-adapter": ["checkpoint=/data/out/checkpoint-100"],
    "infer-merged": ["model=/data/out/model"],
    "merge": ["checkpoint=/data/out/checkpoint-100"],
    "ppo": ["reward_model=/data/out/reward"],
    "publish": ["checkpoint=/data/out/checkpoint-100", "repo=me/demo"],
    "resume": ["checkpoint=/data/out/checkpoint-100"],
}


def job_names() -> list[str]:
    """The example jobs."""
    return sorted(p.stem for p in JOBS.glob("*.yaml"))


def plan_of(name: str) -> Plan:
    """Compile one example job; an assertion fails when something can be said against it."""
    job = read_job((JOBS / f"{name}.yaml").read_bytes(), f"{name}.yaml", SETS.get(name, []))
    assert job.spec.stack is not None, "an example says which stack it is for"
    stack, table = stack_of(job.spec.stack)
    assert check_job(job, stack, table) == []
    return compile_plan(job, stack, {c: frozenset(table.names(c)) for c in table.commands})


@cache
def stack_of(name: str) -> tuple[Stack, ArgTable]:
    """A stack with the arguments of its ms-swift."""
    stack = load_stack(name)
    table = arg_table(stack)
    assert table is not None
    return stack, table


def rendered(name: str) -> dict[str, str]:
    """File name -> text of everything that is committed for one job."""
    plan = plan_of(name)
    return {f"{name}.sh": shell_text(plan), f"{name}.json": plan.model_dump_json(indent=1) + "\n"}


if __name__ == "__main__":
    for old in [*HERE.glob("*.sh"), *HERE.glob("*.json")]:
        old.unlink()
    for job in job_names():
        for file, text in rendered(job).items():
            (HERE / file).write_text(text, encoding="utf-8")
