"""What will be executed, before anyone decides where: the same input gives the same plan, byte for byte.

Text in a plan may hold `${{ }}` references that only a placement can answer: `run.dir`, `run.inside` (the
scripts that ship with the runner), `here.output`, `here.port.http`, `here.devices`, `steps.<name>.<output>`.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from runner.core.notice import HookKind, masked
from runner.core.spec import Restart

OUTPUT = "${{ here.output }}"
INSIDE = "${{ run.inside }}"


class Value(BaseModel):
    """A frozen value of a plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Note(Value):
    """Something the runner added to what the spec says, and why."""

    what: str
    why: str


class Command(Value):
    """One process to run to its end; `name` heads its part of the log."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = Field(default_factory=dict)


class Ready(Value):
    """When a service counts as up: its own listener on the port answers `path`, and knows `model`."""

    port: str = "http"
    path: str | None = "/v1/models"
    model: str | None = None
    timeout_s: float = 1800.0


class Output(Value):
    """How an output is found after a step ended, relative to the run."""

    find: Literal["path", "checkpoint", "best_checkpoint", "json", "endpoint", "host", "port"]
    at: str = OUTPUT
    key: str = ""


class Draft(Value):
    """What a kind says about one step: all that depends on its own fields."""

    commands: tuple[Command, ...]
    env: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)  # name below the step's folder -> text
    notes: tuple[Note, ...] = ()
    ports: dict[str, int | None] = Field(default_factory=dict)  # None: any free one
    ready: Ready | None = None
    outputs: dict[str, Output] = Field(default_factory=dict)
    needs: tuple[str, ...] = ()  # services this step talks to
    stop: Literal["ranks", "tree"] = "tree"
    resumable: bool = False
    keep: bool = False
    restart: Restart = "never"


class PlannedStep(Draft):
    """A step of the plan: a draft with what the job as a whole adds."""

    name: str
    kind: str
    service: bool = False
    npus: int = 0
    nproc: int = 1
    nodes: int = 1
    extra_ports: int = 0
    cpus: float | None = None
    memory: int | None = None  # bytes
    secrets: tuple[dict[str, str | None], ...] = ()  # name -> file, or None for the submitter's environment
    timeout_s: float | None = None
    grace_s: float = 120.0
    attempts: int = 1
    backoff_s: float = 5.0
    retry_on: tuple[str, ...] | None = None  # None: every reason that can be retried
    resume: bool = False


class PlannedNotify(Value):
    """Where the end of the run is told; variables are the submitter's, held in memory until then."""

    url: str | None = None
    url_env: str | None = None
    kind: HookKind = "generic"
    secret_env: str | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables it needs."""
        return tuple(name for name in (self.url_env, self.secret_env) if name)

    def shown(self) -> "PlannedNotify":
        """The same without the tokens in its address."""
        return self.model_copy(update={"url": self.url and masked(self.url)})


class Plan(Value):
    """All steps of a run in the order they were written."""

    plan: Literal["plan/1"] = "plan/1"
    name: str
    stack: str | None
    image: str | None
    generation: str
    timeout_s: float | None = None
    notify: PlannedNotify | None = None
    steps: tuple[PlannedStep, ...]

    def step(self, name: str) -> PlannedStep:
        """The step of that name; KeyError when there is none."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    def shown(self) -> "Plan":
        """The plan for people's eyes: without the tokens in the address that is told of the end."""
        return self.model_copy(update={"notify": self.notify and self.notify.shown()})

    def consumers(self, service: str) -> tuple[str, ...]:
        """The steps that a service lives for."""
        return tuple(s.name for s in self.steps if service in s.needs)


class StepScope(Value):
    """What a kind may know of the job around its step."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, defer_build=True)

    job: str
    cpu: bool  # no NPU in this stack
    npus: int
    nproc: int
    known_args: frozenset[str] | None = (
        None  # what the stack's ms-swift accepts for this step; None: not known
    )
    served: Mapping[str, str] = Field(default_factory=dict)  # service step -> served model name
    env: Mapping[str, str] = Field(default_factory=dict)  # the job's and the step's own variables
    report: tuple[str, ...] = ()  # where a training reports its metrics; none: as ms-swift does by itself
    offline: bool = False


def argv_of(args: Mapping[str, Any]) -> list[str]:
    """Render flags in order: a list is several values, a mapping one JSON text, null nothing."""
    argv: list[str] = []
    for name, value in args.items():
        texts = texts_of(value)
        if len(texts) == 1 and texts[0].startswith("-"):
            argv.append(f"--{name}={texts[0]}")  # argparse takes `-1e-05` for a flag, unless it is joined
        elif value is not None:
            argv += [f"--{name}", *texts]
    return argv


def texts_of(value: Any) -> list[str]:
    """The values of a flag as a command line has them."""
    if value is None:
        return []
    return [_text(v) for v in value] if isinstance(value, list) else [_text(value)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        import json

        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return repr(value) if isinstance(value, float) else str(value)
