"""From a checked job and its stack to a plan: pure, the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Mapping

from runner.core.job import Job
from runner.core.kinds import AnyStep
from runner.core.kinds.train import TrainStep
from runner.core.order import needs_of
from runner.core.plan import Note, Plan, PlannedNotify, PlannedStep, StepScope
from runner.core.spec import Resources
from runner.core.stack import Stack

KnownArgs = Mapping[str, frozenset[str]]  # ms-swift command -> its argument names


def compile_plan(job: Job, stack: Stack, known: KnownArgs, *, offline: bool = False) -> Plan:
    """Say exactly what will run, with a reason for all that the spec does not say itself."""
    spec = job.spec
    return Plan(
        name=spec.name,
        stack=stack.stack,
        image=spec.image,
        generation=generation(job, stack),
        timeout_s=spec.timeout,
        notify=PlannedNotify(**spec.notify.model_dump()) if spec.notify else None,
        steps=tuple(_step(job, i, stack, known, offline) for i in range(len(spec.steps))),
    )


def generation(job: Job, stack: Stack) -> str:
    """The generation the job asks for, else the stack's first one."""
    return job.spec.resources.generation or stack.generations[0]


def scope_of(job: Job, index: int, stack: Stack, known: KnownArgs, *, offline: bool = False) -> StepScope:
    """What the kind of a step may know of the job around it."""
    spec, step = job.spec, job.spec.steps[index]
    cpu = stack.cpu
    asked = npus_of(spec.resources, step)
    env = {**spec.env, **step.env}
    return StepScope(
        job=spec.name,
        cpu=cpu,
        npus=0 if cpu else asked,
        nproc=_nproc(env, asked),
        known_args=known.get(step.swift_command or ""),
        served=served_names(job),
        env=spec.env,
        report=reports_of(job, index),
        offline=offline,
    )


def reports_of(job: Job, index: int) -> tuple[str, ...]:
    """Where a step reports its metrics to: what it says itself, else what the job says."""
    step = job.spec.steps[index]
    if not isinstance(step, TrainStep):
        return ()
    return tuple((job.spec.report if step.report is None else step.report) or ())


def npus_of(job: Resources, step: AnyStep) -> int:
    """The devices a step holds: its own wish, else the job's; kinds that run on one device take one."""
    own = step.resources.npus if step.resources else None
    if own is not None:
        return own
    asked = job.npus or 0
    asked = asked if step.spreads else min(asked, 1)
    return asked if step.most_npus is None else min(asked, step.most_npus)


def served_names(job: Job) -> dict[str, str]:
    """The name under which each serve step offers its model."""
    serves = [s for s in job.spec.steps if s.kind == "serve"]
    single = len(serves) == 1
    return {
        s.name: str(
            s.args.get("served_model_name") or (job.spec.name if single else f"{job.spec.name}-{s.name}")
        )
        for s in serves
    }


def _nproc(env: Mapping[str, str], asked: int) -> int:
    written = env.get("NPROC_PER_NODE", "")
    return int(written) if written.isdigit() and int(written) else max(1, asked)


def _step(job: Job, index: int, stack: Stack, known: KnownArgs, offline: bool) -> PlannedStep:
    spec, step = job.spec, job.spec.steps[index]
    scope = scope_of(job, index, stack, known, offline=offline)
    draft = step.draft(scope)
    retry = step.retry or spec.retry
    resources = step.resources or spec.resources
    asked = npus_of(spec.resources, step)
    notes = list(draft.notes)
    if scope.cpu and asked:
        why = f"stack '{stack.stack}' has no NPUs: {scope.nproc} process(es) on the CPU instead"
        notes.append(Note(what=f"npus: {asked}", why=why))
    env = {**spec.env, **step.env, **draft.env}
    if offline and step.swift_command and "HF_HUB_OFFLINE" not in env:
        env["HF_HUB_OFFLINE"] = "1"
        notes.append(Note(what="HF_HUB_OFFLINE=1", why="offline: no hub is asked"))
    ready = draft.ready
    if ready and step.timeout:
        ready = ready.model_copy(update={"timeout_s": step.timeout})
    drafted = draft.model_copy(update={"ready": ready, "env": env, "notes": tuple(notes)})
    return PlannedStep(
        **{**drafted.model_dump(), "needs": needs_of(spec.steps, index)},
        name=step.name,
        kind=step.kind,
        service=step.service,
        npus=scope.npus,
        nproc=scope.nproc,
        nodes=resources.nodes,
        extra_ports=resources.ports,
        cpus=resources.cpus,
        memory=resources.memory,
        secrets=tuple(_secret(s) for s in step.secrets),
        timeout_s=step.timeout,
        grace_s=step.grace,
        attempts=retry.attempts,
        backoff_s=retry.backoff,
        retry_on=None if retry.on is None else tuple(retry.on),
        resume=retry.resume and draft.resumable,
    )


def _secret(secret: object) -> dict[str, str | None]:
    if isinstance(secret, str):
        return {secret: None}
    assert isinstance(secret, dict)
    return {name: where.file for name, where in secret.items()}
