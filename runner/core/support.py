"""What is known to go together: CANN, torch_npu, vllm-ascend, ms-swift by version, each with its source."""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import Field

from runner.core.hardware import Product
from runner.core.parse.cann import parse_cann
from runner.core.spec import Model
from runner.core.wording import closest, did_you_mean, listing, shown
from runner.errors import Finding, UsageError


class Row(Model):
    """One fact, and where it was read."""

    source: str = Field(min_length=1)


class TorchNpuRow(Row):
    """Releases of torch_npu that are made for one CANN."""

    cann: str
    torch_npu: list[str] = Field(min_length=1)


class PythonRow(Row):
    """The Pythons of torch_npu for some lines of torch."""

    torch: list[str]
    pythons: list[str]


class LocalBuild(Row):
    """Below which version of torch one architecture needs a build of torch that PyPI does not have."""

    below: str
    arch: str
    local: str
    index: str


class TorchNpu(Model):
    """What torch_npu goes with."""

    rows: list[TorchNpuRow]
    pythons: list[PythonRow]
    local_build: LocalBuild


class VllmAscendRow(Row):
    """A release or branch of vllm-ascend, and what it is made for; a list holds all that fit."""

    tag: str
    branch_of: str | None = Field(default=None, description="the release that this branch goes on from")
    vllm: list[str]
    python: str = Field(description="in its images")
    pythons: list[str] = Field(description="that it allows")
    cann: str
    torch: str
    torch_npu: list[str]
    triton_ascend: list[str] = Field(default_factory=list)
    transformers: str = Field(description="a version specifier")
    numpy: str | None = Field(default=None, description="a version specifier")
    has_950: bool

    @property
    def wants(self) -> dict[str, list[str] | SpecifierSet]:
        """By package (and `cann`): the versions that fit."""
        exact = {
            "cann": [self.cann],
            "vllm": self.vllm,
            "torch": [self.torch],
            "torch-npu": self.torch_npu,
            "triton-ascend": self.triton_ascend,
        }
        bounds = {"transformers": self.transformers, "numpy": self.numpy}
        return {k: v for k, v in exact.items() if v} | {k: SpecifierSet(v) for k, v in bounds.items() if v}


class VllmAscend(Model):
    """Every row of vllm-ascend that is known."""

    rows: list[VllmAscendRow]


class SwiftRow(Row):
    """What one ms-swift declares."""

    tag: str
    bounds: dict[str, str] = Field(description="package -> version specifier")

    @property
    def wants(self) -> dict[str, SpecifierSet]:
        """By package: the versions that fit."""
        return {name: SpecifierSet(bound) for name, bound in self.bounds.items()}


class Undeclared(Row):
    """A bound between two packages that neither declares."""

    package: str
    versions: str
    requires: str
    bound: str
    says: str


class GitOnly(Row):
    """A package that is another thing on PyPI."""

    package: str
    why: str


class Swift(Model):
    """What ms-swift goes with."""

    rows: list[SwiftRow]
    undeclared: list[Undeclared]
    git_only: list[GitOnly]


class TorchRow(Row):
    """The torchvision and torchaudio of one torch; None where torchaudio declares nothing."""

    torch: str
    torchvision: str
    torchaudio: str | None = None


class Torch(Model):
    """What torch goes with."""

    rows: list[TorchRow]


class CannRow(Row):
    """For which chips a CANN has base images, each with its Pythons; none where they are not known."""

    cann: str
    chips: dict[str, list[str]]


class CannTable(Model):
    """Every CANN that has base images."""

    rows: list[CannRow]


class DriverRow(Row):
    """The lines of HDK that a line of CANN (8.5, 9.1, 9.1.0-beta.3) runs with."""

    cann: str
    products: list[str] = Field(description="generations, or products that number their HDK by themselves")
    runs_with: list[str]
    not_with: list[str] = Field(default_factory=list)
    paired: list[str] = Field(default_factory=list)


class Drivers(Model):
    """Which drivers CANN runs with."""

    rows: list[DriverRow]


class Support(Model):
    """All tables."""

    torch_npu: TorchNpu
    vllm_ascend: VllmAscend
    ms_swift: Swift
    torch: Torch
    cann: CannTable
    driver: Drivers


def read_version(text: str) -> Version | None:
    """The version in `2.10.0.post4+git123`, `v0.23.0` or `core_v0.16.0`; None in a name such as `main`."""
    try:
        return Version(re.sub(r"^core_[vr]", "", text))
    except InvalidVersion:
        return None


def base_release(version: str) -> str:
    """The release that a version is of: 2.10.0 for 2.10.0.post4+git123."""
    return Version(version.removeprefix("v")).base_version


def read_requirement(text: str) -> Requirement | None:
    """The requirement in a pin such as `pyarrow<26`; None when there is none."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def product_of(word: str, products: Sequence[Product]) -> Product | None:
    """The product that a name, a chip or a SOC_VERSION belongs to; `vir04` is a share of its chip."""
    wanted = _squeezed(re.sub(r"vir\d+$", "", word.lower()))
    return next((p for p in products if wanted in map(_squeezed, (p.product, *p.names))), None)


def _squeezed(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())


def vllm_ascend_row(support: Support, ref: str) -> VllmAscendRow | None:
    """The row of a version, tag or branch."""
    return next((r for r in support.vllm_ascend.rows if same_version(ref, r.tag)), None)


def branch_row(support: Support, row: VllmAscendRow) -> VllmAscendRow | None:
    """The branch that goes on from a release."""
    return next((r for r in support.vllm_ascend.rows if r.branch_of == row.tag), None)


def swift_row(support: Support, ref: str) -> SwiftRow | None:
    """The row of a version, tag or branch of ms-swift."""
    return next((r for r in support.ms_swift.rows if same_version(ref, r.tag)), None)


def torch_npu_rows(support: Support, cann: str) -> list[TorchNpuRow]:
    """All rows of one CANN."""
    return [r for r in support.torch_npu.rows if same_cann(cann, r.cann)]


def same_version(one: str, other: str) -> bool:
    """Whether two texts name the same release, whatever the local build is."""
    a, b = read_version(one), read_version(other)
    return one == other if a is None or b is None else a.public == b.public


def same_cann(has: str, row: str) -> bool:
    """Whether a row is for this CANN; an alpha or beta goes with the row of its release."""
    try:
        one, other = parse_cann(has), parse_cann(row)
    except UsageError:
        return False
    return one == other or (one.base == other.base and str(other) == ".".join(map(str, other.base)))


def fits(name: str, has: str, wants: Sequence[str] | SpecifierSet) -> bool:
    """Whether a version is among the ones that fit."""
    if isinstance(wants, SpecifierSet):
        version = read_version(has)
        return version is None or wants.contains(version, prereleases=True)
    return any(same_cann(has, w) if name == "cann" else same_version(has, w) for w in wants)


def capped_below(bounds: SpecifierSet, floor: str) -> bool:
    """Whether the bounds leave nothing from `floor` on."""
    least = Version(floor)
    uppers = [(s.operator, Version(s.version.removesuffix(".*"))) for s in bounds if s.operator[0] in "<=~"]
    return any(v < least or (v == least and op == "<") for op, v in uppers)


AHEAD = 5  # minor releases that may be out since the tables were written


def no_row(what: str, version: str, known: Sequence[str]) -> Finding:
    """What to say of a version without a row: an error when it is a slip for a known one, else a warning."""
    message = f"no row knows {what} {shown(version)}"
    if closest(version, known) and not _may_exist(version, known):
        tail = did_you_mean(version, known)
        return Finding("unknown-version", message + tail, hint=f"known: {listing(reversed(known))}")
    hint = f"nothing is checked against it; the newest known are {listing(list(reversed(known))[:4])}"
    return Finding("unknown-version", message, "warning", hint=hint)


def _may_exist(version: str, known: Sequence[str]) -> bool:
    """Whether it is a release of a known line, an older one, or one of the next."""
    lines = sorted({line for k in known if (line := _line(k))})
    line = _line(version)
    if line is None or not lines:
        return False
    (major, minor), newest = line, lines[-1]
    next_up = (major == newest[0] and minor <= newest[1] + AHEAD) or line == (newest[0] + 1, 0)
    return line in lines or line < lines[0] or (line > newest and next_up)


def _line(version: str) -> tuple[int, int] | None:
    found = re.fullmatch(
        r"v?(\d+)\.(\d+)(?:[.-]?(?:\d+|rc|alpha|beta|a|b|post|dev)\.?\d*)*(?:\+.*)?", version
    )
    return (int(found[1]), int(found[2])) if found else None
