"""Does the stack have what a training reports its metrics with?"""

from __future__ import annotations

from collections.abc import Callable

from runner.core.compile import reports_of
from runner.core.job import Job
from runner.core.yamltext import Path, finding
from runner.errors import Finding


def missing_reporters(job: Job, stack: str, has: Callable[[str], bool | None]) -> list[Finding]:
    """A warning for each reporter that the stack certainly lacks; `has` says None when it is not known."""
    found = {}
    for i, step in enumerate(job.spec.steps):
        given = {*getattr(step, "args", {}), *getattr(step, "extra_args", [])}
        if given & {"report_to", "--report_to"}:
            continue
        for at, reporter in enumerate(reports_of(job, i)):
            if has(reporter) is False:
                place: Path = (*_place(job, i), "report", at)
                message = f"stack '{stack}' has no {reporter}, and a training that reports to it fails"
                hint = f"`pip install {reporter}` into the stack's environment, or leave it out"
                found[place] = finding(
                    job.document, place, "no-reporter", message, hint=hint, severity="warning"
                )
    return list(found.values())


def _place(job: Job, index: int) -> Path:
    """The step, when it says itself where it reports to, else the job."""
    own = getattr(job.spec.steps[index], "report", None) is not None
    return job.step_path(index) if own else ()
