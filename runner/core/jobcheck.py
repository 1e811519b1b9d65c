"""All that can be said against a job before it starts: flags, outputs, processes, files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runner.core.compile import compile_plan, npus_of
from runner.core.job import Job
from runner.core.lint import ArgTable, check_args
from runner.core.order import order_findings
from runner.core.spec import SwiftStep
from runner.core.stack import Stack
from runner.core.template import refs
from runner.core.wording import did_you_mean, listing
from runner.core.yamltext import Path
from runner.errors import Finding

FILE_ARGS = ("dataset", "val_dataset", "cached_dataset", "external_plugins", "custom_register_path")
_FILE_END = re.compile(r"\.(jsonl?|csv|txt|py)$")
_SAMPLED = re.compile(r"(#\d+|<[^>]*>)+$")
_HUB_ARGS = ("model", "dataset", "val_dataset", "ref_model", "reward_model", "teacher_model")
_HUB_ID = re.compile(r"^(?:(?:hf|ms|HF|MS)::)?([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)(?::[\w-]+)?$")


def check_job(job: Job, stack: Stack, table: ArgTable | None) -> list[Finding]:
    """Every finding that needs no look at the machine."""
    found = order_findings(job)
    if found:
        return found
    for i in range(len(job.spec.steps)):
        found += _flags(job, i, table) + _processes(job, i, stack) + _resume(job, i)
    if stack.cpu is False and job.spec.resources.generation not in (None, *stack.generations):
        wanted = job.spec.resources.generation
        message = f"stack '{stack.stack}' is for {', '.join(stack.generations)}, not {wanted}"
        found.append(_top(job, ("resources", "generation"), "generation", message))
    if not any(f.severity == "error" for f in found):
        found += _outputs(job, stack)
    return found


def named_files(job: Job) -> list[tuple[str, Path]]:
    """The local files and folders that a job names, with where it names them."""
    named = []
    for i, step in enumerate(job.spec.steps):
        for name, value in getattr(step, "args", {}).items():
            for j, item in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(item, str) and "${{" not in item and _is_file(name, item):
                    place = job.step_path(i, "args", name, *([j] if isinstance(value, list) else []))
                    named.append((_SAMPLED.sub("", item), place))
    return named


def hub_ids(job: Job) -> list[tuple[str, str, Path]]:
    """(`model` or `dataset`, id, place) for all that would be fetched from a hub."""
    found = []
    for i, step in enumerate(job.spec.steps):
        for name, value in getattr(step, "args", {}).items():
            if name not in _HUB_ARGS:
                continue
            for j, item in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(item, str) or _is_file(name, item):
                    continue
                if match := _HUB_ID.match(_SAMPLED.sub("", item)):
                    what = "dataset" if "dataset" in name else "model"
                    place = job.step_path(i, "args", name, *([j] if isinstance(value, list) else []))
                    found.append((what, match[1], place))
    return found


def _is_file(name: str, value: str) -> bool:
    bare = _SAMPLED.sub("", value)
    return bare.startswith(("./", "../", "/", "~")) or (name in FILE_ARGS and bool(_FILE_END.search(bare)))


def _flags(job: Job, index: int, table: ArgTable | None) -> list[Finding]:
    step = job.spec.steps[index]
    command = step.swift_command
    if table is None or command is None or not isinstance(step, SwiftStep):
        return []
    found = []
    for problem in check_args(command, step.args, step.extra_args, table):
        in_extra = problem.index is not None
        rest: tuple[str | int, ...] = (
            ("extra_args", problem.index or 0) if in_extra else ("args", problem.name)
        )
        key = not in_extra and problem.code not in ("bad-type", "bad-choice")
        found.append(
            job.at(
                index,
                *rest,
                code=problem.code,
                message=problem.message,
                hint=problem.hint,
                severity=problem.severity,
                key=key,
            )
        )
    return found


def _processes(job: Job, index: int, stack: Stack) -> list[Finding]:
    step = job.spec.steps[index]
    found = []
    for name, env, path in (("step", step.env, job.step_path(index, "env")), ("job", job.spec.env, ("env",))):
        if "ASCEND_RT_VISIBLE_DEVICES" in env and (name == "step" or index == 0):
            message = "ASCEND_RT_VISIBLE_DEVICES is set by the runner to the devices that the step holds"
            hint = "say how many with `resources: {npus: N}`"
            place = (*path, "ASCEND_RT_VISIBLE_DEVICES")
            found.append(_top(job, place, "devices-by-hand", message, hint=hint, key=True))
    written = {**job.spec.env, **step.env}.get("NPROC_PER_NODE")
    asked = npus_of(job.spec.resources, step)
    if written and not (written.isdigit() and int(written) > 0):
        found.append(_nproc(job, index, f"NPROC_PER_NODE must be a whole number above zero, got '{written}'"))
    elif written and step.spreads and asked and int(written) != asked:
        message = (
            f"NPROC_PER_NODE is {written} but the step has {asked} device(s); one process per device (FAQ Q7)"
        )
        found.append(_nproc(job, index, message))
    return found


def _resume(job: Job, index: int) -> list[Finding]:
    step = job.spec.steps[index]
    retry = step.retry or job.spec.retry
    if not (retry.resume and step.kind.startswith("megatron-") and step.kind != "megatron-export"):
        return []
    path = (*job.step_path(index), "retry", "resume") if step.retry else ("retry", "resume")
    message = f"step '{step.name}' starts from the beginning when it is tried again"
    hint = "ms-swift's Megatron training has no --resume_from_checkpoint"
    return [_top(job, path, "no-resume", message, hint=hint, severity="warning")]


def _nproc(job: Job, index: int, message: str) -> Finding:
    own = "NPROC_PER_NODE" in job.spec.steps[index].env
    path = job.step_path(index, "env", "NPROC_PER_NODE") if own else ("env", "NPROC_PER_NODE")
    return _top(job, path, "nproc", message, hint="leave NPROC_PER_NODE out; the runner sets it from `npus`")


def _outputs(job: Job, stack: Stack) -> list[Finding]:
    plan = compile_plan(job, stack, {})
    outputs = {s.name: sorted(s.outputs) for s in plan.steps}
    found = []
    for i, step in enumerate(job.spec.steps):
        for ref, path in refs(step.model_dump(exclude={"name", "kind"})):
            if ref.path[0] != "steps" or ref.path[2] in outputs[ref.path[1]]:
                continue
            _, name, output = ref.path
            has = listing(outputs[name]) or "none"
            message = f"step '{name}' has no output '{output}'{did_you_mean(output, outputs[name])}"
            found.append(
                job.at(i, *path, code="unknown-output", message=message, hint=f"outputs of '{name}': {has}")
            )
    return found


def missing_files(job: Job, exists: Callable[[str], bool]) -> list[Finding]:
    """A finding for each local file that the job names and that is not there."""
    return [
        _top(
            job,
            place,
            "missing-file",
            f"there is no file or folder '{name}'",
            hint="paths start at the job file's folder",
        )
        for name, place in named_files(job)
        if not exists(name)
    ]


def not_cached(job: Job, cached: Callable[[str, str], bool]) -> list[Finding]:
    """Offline: a finding for each hub id that is not in the cache; ms-swift itself needs 33 s to find out."""
    return [
        _top(
            job,
            place,
            "offline",
            f"offline, and {what} '{name}' is not in the cache",
            hint="fetch it on a machine with a network, or give a local path",
        )
        for what, name, place in hub_ids(job)
        if not cached(what, name)
    ]


def _top(job: Job, path: Path, code: str, message: str, **more: Any) -> Finding:
    from runner.core.yamltext import finding

    return finding(job.document, path, code, message, **more)
