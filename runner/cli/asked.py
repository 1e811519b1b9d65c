"""What `runner submit` is asked for: job files, each at every point of its matrix, or a stored run anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from runner.cli.home import revive, set_up
from runner.cli.jobfile import Choices, LoadedJob, load_jobs
from runner.core.limits import never_fits
from runner.core.yamltext import format_finding
from runner.errors import Finding, HostError, RunnerError, SpecError
from runner.store.db import Store
from runner.store.story import Story
from runner.submission import Submission, submit


def from_files(files: Sequence[str], chosen: Choices, group: str | None) -> list[list[Submission]]:
    """The runs of each file; SpecError with all that is wrong in any of them."""
    wrong: list[Finding] = []
    asked = []
    for file in files:
        try:
            jobs = load_jobs(file, chosen)
        except SpecError as e:
            wrong += e.findings
            continue
        _warn(jobs)
        name = group or (jobs[0].plan.name if jobs[0].job.spec.matrix else None)
        asked.append([_submission(j, chosen, name, j.path, j.path.parent) for j in jobs])
    if wrong:
        raise SpecError(wrong)
    return [[one for runs in asked for one in runs]] if group else asked


def from_run(store: Store, text: str, chosen: Choices, group: str | None) -> list[Submission]:
    """A stored run anew: its spec and its copy of the job's folder, with changes."""
    run = store.find(text)
    folder = store.folder(run.id)
    told = next((e for e in Story(folder.events).events() if e.get("event") == "submitted"), {})
    said = told.get("said", {})
    point = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in run.point.items()]
    sets = [*said.get("sets", []), *point, *chosen.sets]
    stack, offline = chosen.stack or said.get("stack"), chosen.offline or bool(said.get("offline"))
    whole = Choices(sets, stack, offline)
    source = folder.snapshot if folder.snapshot.is_dir() else Path(run.file).parent
    jobs = load_jobs(str(folder.spec), whole, source)
    _warn(jobs)
    return [_submission(j, whole, group, Path(run.file), source) for j in jobs]


def submit_all(store: Store, groups: Sequence[Sequence[Submission]]) -> list[int]:
    """Write all runs down, in order, and leave an agent that drives them; their numbers.

    HostError, before anything is written, when this host cannot run one of them.
    """
    host = set_up(store.home)
    for one in (a for asked in groups for a in asked):
        host.backend.environment(one.plan)
        if why := never_fits(host.limits, one.plan):
            hint = "ask for less under resources, or raise `limits` in the site file"
            raise HostError(f"{one.plan.name}: {why}", hint=hint)
    runs: list[int] = []
    try:
        for asked in groups:
            first = None
            for one in asked:
                runs.append(submit(store, host.backend, one, first))
                first = first or runs[-1]
                if len(runs) == 1:
                    revive(store)
    except RunnerError:
        if runs:
            click.echo(f"submitted before this failed: {', '.join(map(str, runs))}", err=True)
        raise
    finally:
        if runs:
            revive(store)
    return runs


def _submission(job: LoadedJob, chosen: Choices, group: str | None, file: Path, folder: Path) -> Submission:
    said = {"sets": list(chosen.sets), "stack": chosen.stack, "offline": chosen.offline}
    spec = job.job.spec
    return Submission(
        plan=job.plan,
        raw=job.raw,
        file=file,
        folder=folder,
        copy=spec.snapshot,
        priority=spec.priority,
        group=group,
        point=job.point,
        said=said,
        stack=job.stack,
        params=job.job.params,
    )


def _warn(jobs: Sequence[LoadedJob]) -> None:
    said = dict.fromkeys(format_finding(w) for job in jobs for w in job.warnings)
    for warning in said:
        click.echo(warning, err=True)
