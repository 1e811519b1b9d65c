"""The tables of what goes together and the generations of hardware, read from the files beside this one."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from runner.core.buildfail import BuildRule, BuildRules
from runner.core.hardware import Hardware, Product
from runner.core.spec import Model
from runner.core.support import CannTable, Drivers, Support, Swift, Torch, TorchNpu, VllmAscend
from runner.core.validate import validate
from runner.core.yamltext import read_yaml
from runner.errors import SpecError

DATA = Path(__file__).parent
GENERATIONS = ("a2", "a3", "950")
T = TypeVar("T", bound=Model)


class Unsupported(Model):
    """The products that ms-swift is not supported on."""

    products: list[Product] = Field(min_length=1)


class Published(Model):
    """One published image; `read` says whether the tag itself was seen at the source."""

    tag: str
    read: bool


class Official(Model):
    """The published images of ms-swift."""

    repository: str
    source: str
    tags: list[Published]


@cache
def load_official() -> Official:
    """The published images of ms-swift."""
    return _read(DATA / "support" / "official_images.yaml", Official)


@cache
def load_support() -> Support:
    """All tables of versions that go together."""
    tables = DATA / "support"
    return Support(
        torch_npu=_read(tables / "torch_npu.yaml", TorchNpu),
        vllm_ascend=_read(tables / "vllm_ascend.yaml", VllmAscend),
        ms_swift=_read(tables / "ms_swift.yaml", Swift),
        torch=_read(tables / "torch.yaml", Torch),
        cann=_read(tables / "cann.yaml", CannTable),
        driver=_read(tables / "driver.yaml", Drivers),
    )


@cache
def load_hardware() -> list[Hardware]:
    """The generations that ms-swift is supported on, the oldest first."""
    return [_read(DATA / "hardware" / f"{name}.yaml", Hardware) for name in GENERATIONS]


@cache
def load_unsupported() -> list[Product]:
    """The products that ms-swift is not supported on."""
    return _read(DATA / "hardware" / "unsupported.yaml", Unsupported).products


@cache
def load_build_rules() -> list[BuildRule]:
    """Why builds are known to fail."""
    return _read(DATA / "rules" / "build_failures.yaml", BuildRules).rules


def _read(path: Path, model: type[T]) -> T:
    """One file as a value; SpecError with all that is wrong in it."""
    value, findings = validate(read_yaml(path.read_bytes(), str(path)), model)
    if value is None or findings:
        raise SpecError(findings)
    return value
