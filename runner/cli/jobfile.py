"""From a file on disk to a checked job and its plan: the one door that check, plan and submit share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.cli.reporters import has_package
from runner.cli.sitefile import LoadedSite, load_site
from runner.core.compile import compile_plan
from runner.core.job import Job, job_of
from runner.core.jobcheck import check_job, missing_files, not_cached
from runner.core.lint import ArgTable
from runner.core.matrix import Point, points
from runner.core.plan import Plan
from runner.core.reportcheck import missing_reporters
from runner.core.stack import Stack
from runner.core.validate import in_order
from runner.core.yamltext import MAX_BYTES, finding, read_yaml
from runner.data.stacks import load_stack, stack_names
from runner.errors import Finding, SpecError, UsageError
from runner.store.folders import default_home
from runner.store.modelfacts import local_fit

DEFAULT_STACK = "cpu"


@dataclass(frozen=True)
class LoadedJob:
    """A job that may start, at one point of its matrix, with what is said about it all the same."""

    path: Path
    raw: bytes
    job: Job
    stack: Stack
    plan: Plan
    site: LoadedSite
    warnings: list[Finding]
    point: Point


@dataclass(frozen=True)
class Choices:
    """What the command line says about a job file."""

    sets: Sequence[str] = ()
    stack: str | None = None
    offline: bool = False


def load_job(file: str, sets: Sequence[str], stack: str | None, *, offline: bool = False) -> LoadedJob:
    """The job at the first point of its matrix; all of them are checked."""
    return load_jobs(file, Choices(sets, stack, offline))[0]


def load_jobs(file: str, chosen: Choices, folder: Path | None = None) -> list[LoadedJob]:
    """Read, check against everything that is known, and compile: one job for each point of the matrix.

    SpecError with all that is wrong. Relative paths are looked for in the file's folder, or in `folder`.
    """
    raw = _read(file)
    doc = read_yaml(raw, file)
    site = load_site()
    pinned = frozenset(s.partition("=")[0].strip() for s in chosen.sets)
    path = Path(file).absolute()
    loaded = []
    for point in points(doc, pinned):
        job = job_of(doc, chosen.sets, point)
        loaded.append(_checked(path, raw, job, point, site, chosen, folder or path.parent))
    return loaded


def _checked(
    path: Path, raw: bytes, job: Job, point: Point, site: LoadedSite, chosen: Choices, folder: Path
) -> LoadedJob:
    name = chosen.stack or job.spec.stack or site.site.stack or DEFAULT_STACK
    stack = _stack(job, name, forced=chosen.stack is not None)
    table = arg_table(stack)
    findings = check_job(job, stack, table)
    findings += missing_files(job, lambda name: (folder / Path(name).expanduser()).exists())
    findings += missing_reporters(job, stack.stack, has_package(stack.stack))
    offline = chosen.offline or site.site.offline
    if offline:
        findings += not_cached(job, lambda what, name: _cached(what, name, folder, site))
    findings = in_order(findings)
    if any(f.severity == "error" for f in findings):
        raise SpecError(findings)
    findings = in_order([*findings, *local_fit(job, folder, default_home(), *_caches(site))])
    known = {c: frozenset(table.names(c)) for c in table.commands} if table else {}
    plan = compile_plan(job, stack, known, offline=offline)
    return LoadedJob(path, raw, job, stack, plan, site, findings, point)


def arg_table(stack: Stack) -> ArgTable | None:
    """What the stack's ms-swift accepts; None when the stack has no ms-swift."""
    from runner.data.load import swift_arg_table

    version = stack.version("ms-swift")
    if version is None:
        return None
    return ArgTable.of(swift_arg_table(version, stack.version("transformers"), stack.version("trl")))


def _stack(job: Job, name: str, *, forced: bool) -> Stack:
    if forced or job.spec.stack is None or name in stack_names():
        return load_stack(name)
    try:
        return load_stack(name)
    except UsageError as e:
        raise SpecError([finding(job.document, ("stack",), "unknown-stack", e.message, hint=e.hint)]) from e


def _read(file: str) -> bytes:
    path = Path(file)
    try:
        with path.open("rb") as f:
            return f.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise UsageError(f"{file} is a folder, not a job file", hint="name the YAML file in it") from None
    except FileNotFoundError:
        raise UsageError(f"there is no file {file}", hint="paths start at the folder you are in") from None
    except (OSError, ValueError) as e:
        raise UsageError(f"cannot read {file}: {e}") from e


def _caches(site: LoadedSite) -> tuple[Path, Path]:
    """ModelScope's and Hugging Face's."""
    caches = site.site.caches
    scope = caches.modelscope or os.environ.get("MODELSCOPE_CACHE", "~/.cache/modelscope/hub")
    face = caches.huggingface or os.environ.get("HF_HOME", "~/.cache/huggingface")
    return Path(scope).expanduser(), Path(face).expanduser()


def _cached(what: str, name: str, folder: Path, site: LoadedSite) -> bool:
    scope, face = _caches(site)
    kind = f"{what}s"
    places = [
        folder / name,
        scope / kind / name.replace(".", "___"),
        scope / kind / name,
        face / "hub" / f"{kind}--{name.replace('/', '--')}",
    ]
    return any(p.exists() for p in places)
