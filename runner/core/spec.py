"""The words of a job spec that every kind shares: resources, mounts, retries, and the base of a step."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

NAME = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$"
STEP_NAME = r"^[a-zA-Z_][a-zA-Z0-9_-]{0,62}$"  # so that ${{ steps.<name>.<output> }} can be written
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Model(BaseModel):
    """A strict, frozen value: unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def seconds(value: object) -> float:
    """Read a duration: a number of seconds, or `90s`, `5m`, `12h`, `2d`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return float(value)
    if (
        isinstance(value, str)
        and (m := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", value))
        and float(m[1]) > 0
    ):
        return float(m[1]) * _UNITS[m[2]]
    raise ValueError("must be a duration above zero such as 90s, 30m, 12h or 2d")


def size_bytes(value: object) -> int:
    """Read a size in bytes: a number, or `512m`, `128g`, `1t` (powers of 1024)."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str) and (m := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", value.lower())):
        return int(float(m[1]) * _SIZES[m[2]])
    raise ValueError("must be a size such as 512m, 128g or 1t")


def _env_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ValueError("must be text, a number or true/false")


Duration = Annotated[float, BeforeValidator(seconds), Field(json_schema_extra={"type": ["number", "string"]})]
Size = Annotated[int, BeforeValidator(size_bytes), Field(json_schema_extra={"type": ["integer", "string"]})]
EnvText = Annotated[
    str, BeforeValidator(_env_text), Field(json_schema_extra={"type": ["string", "number", "boolean"]})
]
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Env = dict[EnvName, EnvText]


class Resources(Model):
    """What a step asks for on each node, before anyone decides where it goes."""

    npus: int | None = Field(default=None, ge=0, le=1024, description="NPU devices per node; none on the CPU")
    nodes: int = Field(default=1, ge=1, le=1024)
    generation: Literal["A2", "A3", "950", "cpu"] | None = Field(
        default=None, description="None: any that fits the image"
    )
    cpus: float | None = Field(default=None, gt=0)
    memory: Size | None = None
    shm: Size = Field(default=128 << 30, description="size of /dev/shm in a container")
    ports: int = Field(
        default=0, ge=0, le=64, description="free TCP ports to lease, given as RUNNER_PORTS=a,b,..."
    )


class Mount(Model):
    """A host folder that a container sees; a local process sees the source itself."""

    source: str
    target: str = Field(pattern=r"^/")
    mode: Literal["ro", "rw"] = "rw"


RetriedReason = Literal[
    "exit_code", "signal", "oom", "port_taken", "not_ready", "host_lost", "daemon_restart"
]


class Retry(Model):
    """How often a failed step is tried, and whether training goes on from its newest complete checkpoint."""

    attempts: int = Field(default=1, ge=1, le=100)
    resume: bool = False
    backoff: Duration = 5.0
    on: list[RetriedReason] | None = Field(default=None, description="only these ends; null: all of them")


class SecretFile(Model):
    """A secret that is read from a file when the step starts."""

    file: str


Restart = Literal["never", "on-failure", "always"]
Secret = EnvName | dict[EnvName, SecretFile]
Args = dict[str, Any]
StepName = Annotated[str, Field(pattern=STEP_NAME)]


class StepBase(Model):
    """What every step may say, whatever its kind."""

    service: ClassVar[bool] = False
    swift_command: ClassVar[str | None] = None  # whose arguments `args` are: "sft", "megatron sft", ...
    spreads: ClassVar[bool] = (
        False  # uses all devices the job asks for; the others take one unless the step says more
    )
    most_npus: ClassVar[int | None] = None

    name: StepName
    needs: list[StepName] | None = Field(default=None, description="None: the step before this one")
    env: Env = Field(default_factory=dict)
    resources: Resources | None = None
    secrets: list[Secret] = Field(default_factory=list)
    timeout: Duration | None = Field(
        default=None, description="of a service: how long it may take to be READY"
    )
    grace: Duration = Field(
        default=120.0, description="how long a stopped step may take to save its checkpoint"
    )
    retry: Retry | None = None


class SwiftStep(StepBase):
    """A step whose `args` are ms-swift's own flags under their own names."""

    args: Args = Field(default_factory=dict)
    extra_args: list[EnvText] = Field(default_factory=list, description="appended as they are")
