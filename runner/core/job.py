"""A job spec: from the text a person wrote to a checked value, or to all that is wrong with it at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import Field, ValidationError, model_validator

from runner.core.expr import evaluate
from runner.core.kinds import AnyStep, Step
from runner.core.kinds.train import Report
from runner.core.matrix import matrix_findings
from runner.core.notice import SIGNED, HookKind
from runner.core.params import apply_sets, missing_params, params_findings
from runner.core.spec import NAME, Duration, Env, EnvName, Model, Mount, Resources, Retry
from runner.core.validate import in_order, validate
from runner.core.yamltext import Document, Path, finding, read_yaml
from runner.errors import Finding, SpecError

RUN_WORDS = ("id", "name", "dir")
STEP_CLASSES: dict[str, Any] = {get_args(c.model_fields["kind"].annotation)[0]: c for c in get_args(AnyStep)}


class JobNotify(Model):
    """Where the end of the job's runs is told, instead of where the site says."""

    url: str | None = Field(default=None, pattern=r"^https?://[^\s{}]+$")
    url_env: EnvName | None = Field(
        default=None, description="the variable with the address, taken from the environment at submit"
    )
    kind: HookKind = "generic"
    secret_env: EnvName | None = Field(
        default=None, description="the variable with what signs the message; dingtalk and feishu ask for one"
    )

    @model_validator(mode="after")
    def _fits(self) -> JobNotify:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("notify has either 'url' or 'url_env'")
        if self.secret_env and self.kind not in SIGNED:
            raise ValueError(f"'secret_env' is for {' and '.join(SIGNED)}; a {self.kind} hook is not signed")
        return self


class JobHead(Model):
    """What holds for all steps of a job."""

    name: str = Field(pattern=NAME)
    stack: str | None = Field(default=None, description="a named set of pins; None: the site's default")
    image: str | None = Field(default=None, description="an exact image reference, or `auto`")
    resources: Resources = Resources()
    params: dict[str, Any] = Field(default_factory=dict, description="null: must be given by --set")
    env: Env = Field(default_factory=dict)
    mounts: list[Mount] = Field(default_factory=list)
    retry: Retry = Retry()
    timeout: Duration | None = None
    priority: int = Field(
        default=0, ge=-100, le=100, description="of waiting runs the higher one starts first"
    )
    matrix: dict[str, Any] = Field(
        default_factory=dict, description="param -> list of values: one run for each combination"
    )
    report: Report | None = Field(
        default=None, description="where trainings report metrics to; null: as ms-swift does, to tensorboard"
    )
    notify: JobNotify | None = Field(
        default=None, description="who is told of the end; null: as the site says"
    )
    snapshot: bool = Field(
        default=True, description="false: steps run in the job's own folder instead of a copy"
    )


class JobSpec(JobHead):
    """What one submission asks for."""

    steps: list[Step] = Field(min_length=1)


@dataclass(frozen=True)
class Job:
    """A checked spec with the document it came from, so that later findings still know their place."""

    document: Document
    spec: JobSpec
    params: Mapping[str, object]
    single: bool  # the file has no `steps`; its one step stands at the top level

    def step_path(self, index: int, *rest: str | int) -> Path:
        """Where a step, or something in it, stands in the file."""
        return tuple(rest) if self.single else ("steps", index, *rest)

    def at(self, index: int, *rest: str | int, code: str, message: str, **more: Any) -> Finding:
        """A finding about something in a step."""
        return finding(self.document, self.step_path(index, *rest), code, message, **more)


def read_job(
    raw: bytes, file: str, sets: Sequence[str] = (), point: Mapping[str, object] | None = None
) -> Job:
    """Read, substitute and validate; SpecError with everything that is wrong with the file itself."""
    return job_of(read_yaml(raw, file), sets, point or {})


def job_of(doc: Document, sets: Sequence[str], point: Mapping[str, object]) -> Job:
    """The job of a document at one point of its matrix; otherwise as `read_job`."""
    whole = dict(doc.value)
    params = whole.get("params")
    chosen = {**apply_sets(params if isinstance(params, dict) else {}, sets), **point}
    value, problems = evaluate(doc, _without_params(whole), (), _scope(whole, chosen), _late(whole))
    assert isinstance(value, dict)
    problems += [*missing_params(doc, chosen), *params_findings(doc), *matrix_findings(doc)]
    if isinstance(params, dict):
        value["params"] = dict(chosen)
    elif "params" in whole:
        value["params"] = params
    spec, wrong = _validated(doc, value)
    findings = in_order([*wrong, *problems])
    if spec is None or any(f.severity == "error" for f in findings):
        raise SpecError(findings)
    return Job(doc, spec, chosen, single="steps" not in doc.value)


def _without_params(whole: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in whole.items() if k != "params"}


def _scope(whole: Mapping[str, object], params: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    env = whole.get("env")
    return {"params": params, "env": env if isinstance(env, dict) else {}}


def _late(whole: Mapping[str, object]) -> Any:
    steps = whole.get("steps")
    names = [s.get("name") for s in steps if isinstance(s, dict)] if isinstance(steps, list) else []

    def late(path: tuple[str, ...]) -> str | None:
        from runner.core.wording import did_you_mean

        match path:
            case ("run", word) if word in RUN_WORDS:
                return None
            case ("run", *_):
                return f"unknown name '{'.'.join(path)}'; run has {', '.join(RUN_WORDS)}"
            case ("steps", step, _) if step in names:
                return None
            case ("steps", step, _):
                return f"there is no step '{step}'{did_you_mean(step, [str(n) for n in names])}"
            case ("steps", *_):
                return "a step's output is written steps.<name>.<output>"
        return f"unknown name '{'.'.join(path)}'{did_you_mean(path[0], ['params', 'env', 'steps', 'run'])}"

    return late


def _quickly(value: Mapping[str, object]) -> JobSpec | None:
    """A flawless spec, built with the classes of its own kinds alone; all of them take 0.15 s to build."""
    steps = value.get("steps")
    if not isinstance(steps, list) or not steps:
        return None
    classes = [STEP_CLASSES.get(str(s.get("kind"))) if isinstance(s, dict) else None for s in steps]
    if None in classes:
        return None
    try:
        head = JobHead.model_validate({k: v for k, v in value.items() if k != "steps"})
        made = [c.model_validate(s) for c, s in zip(classes, steps, strict=True) if c is not None]
    except ValidationError:
        return None
    return JobSpec.model_construct(**dict(head), steps=made)


def _validated(doc: Document, value: dict[str, object]) -> tuple[JobSpec | None, list[Finding]]:
    if "steps" in value or "kind" not in value:
        spec = _quickly(value)
        return (spec, []) if spec else validate(doc, JobSpec, value)
    kind = value["kind"]
    step_class = STEP_CLASSES.get(kind) if isinstance(kind, str) else None
    if step_class is None:
        from runner.core.wording import did_you_mean

        hint = did_you_mean(str(kind), STEP_CLASSES)
        return None, [finding(doc, ("kind",), "unknown-kind", f"unknown kind '{kind}'{hint}", hint=_kinds())]
    top = {k: v for k, v in value.items() if k in JobSpec.model_fields}
    own = {k: v for k, v in value.items() if k not in JobSpec.model_fields}
    step, wrong = validate(doc, step_class, {**own, "name": _step_name(value.get("name"))})
    head, more = validate(doc, JobHead, top)
    if step is None or head is None:
        return None, [*wrong, *more]
    return JobSpec.model_construct(**dict(head), steps=[step]), [*wrong, *more]


def _step_name(job: object) -> str:
    """The one step is called like its job, as far as a step may be."""
    name = re.sub(r"[^a-zA-Z0-9_-]", "-", job) if isinstance(job, str) else ""
    return name if re.match(r"[a-zA-Z_]", name) else f"_{name}"


def _kinds() -> str:
    return "kinds: " + ", ".join(STEP_CLASSES)
