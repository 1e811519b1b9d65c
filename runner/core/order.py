"""In which order steps run: written needs, the step before, and what a step reads or talks to."""

from __future__ import annotations

from collections.abc import Sequence

from runner.core.job import Job
from runner.core.kinds import AnyStep
from runner.core.template import refs
from runner.core.wording import did_you_mean
from runner.errors import Finding


def needs_of(steps: Sequence[AnyStep], index: int) -> tuple[str, ...]:
    """The steps that must have ended, or be READY, before this one starts; in a fixed order."""
    step = steps[index]
    written = step.needs if step.needs is not None else [steps[index - 1].name] if index else []
    read = [
        ref.path[1] for ref, _ in refs(step.model_dump(exclude={"name", "kind"})) if ref.path[0] == "steps"
    ]
    target = [step.target] if step.kind == "probe" else []
    return tuple(dict.fromkeys([*written, *read, *target]))


def order_findings(job: Job) -> list[Finding]:
    """Steps of the same name, needs that do not exist, and circles."""
    steps = job.spec.steps
    names = [s.name for s in steps]
    found = [
        job.at(i, "name", code="duplicate-step", message=f"step {names.index(n) + 1} is called '{n}' already")
        for i, n in enumerate(names)
        if names.index(n) != i
    ]
    for i, step in enumerate(steps):
        for j, need in enumerate(step.needs or []):
            if need not in names:
                message = f"there is no step '{need}'{did_you_mean(need, names)}"
                found.append(job.at(i, "needs", j, code="unknown-step", message=message))
        if step.kind == "probe" and step.target not in names:
            message = f"there is no step '{step.target}'{did_you_mean(step.target, names)}"
            found.append(job.at(i, "target", code="unknown-step", message=message))
        elif step.kind == "probe" and not steps[names.index(step.target)].service:
            message = f"step '{step.target}' is no service; a probe asks a serve, rollout or app step"
            found.append(job.at(i, "target", code="no-service", message=message))
    return found or _circle(job)


def _circle(job: Job) -> list[Finding]:
    steps = job.spec.steps
    left = {s.name: set(needs_of(steps, i)) for i, s in enumerate(steps)}
    while free := [n for n, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    if not left:
        return []
    path = [next(iter(left))]
    while path.count(path[-1]) == 1:
        path.append(min(left[path[-1]] & left.keys()))
    circle = path[path.index(path[-1]) :]
    index = [s.name for s in steps].index(circle[0])
    what = "needs itself" if len(circle) == 2 else "steps need each other in a circle: " + " -> ".join(circle)
    message = f"step '{circle[0]}' {what}" if len(circle) == 2 else what
    hint = "a step without `needs` needs the one before it; `needs: []` lets it start at once"
    key = "needs" if steps[index].needs is not None else "name"
    return [job.at(index, key, code="circle", message=message, hint=hint)]
