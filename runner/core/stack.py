"""A stack: a named set of pins, and the images and environments that are made of it."""

import re
from typing import Literal

from pydantic import Field, model_validator

from runner.core.spec import Model

Generation = Literal["A2", "A3", "950", "cpu"]


class Variant(Model):
    """The same package as another build."""

    version: str
    index: str | None = None
    requires: list[str] = Field(default_factory=list)


class Checkout(Model):
    """A repository at one commit."""

    git: str
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")


class Pin(Model):
    """One package at one version or commit, and where that is known from."""

    version: str
    source: str = ""
    index: str | None = Field(default=None, description="the name of an index below, when PyPI has it not")
    x86: Variant | None = Field(default=None, description="what stands in its place on x86_64")
    git: str | None = Field(default=None, description="a repository; `version` is then a branch or tag")
    commit: str | None = Field(default=None, description="what that branch or tag was; what is installed")
    kernels: Checkout | None = Field(default=None, description="where its kernels are compiled from")
    requires: list[str] = Field(
        default_factory=list, description="what it declares, where no resolver can ask"
    )

    @model_validator(mode="after")
    def _whole(self) -> "Pin":
        if (self.git is None) != (self.commit is None):
            raise ValueError("git and commit go together")
        if self.commit and not re.fullmatch(r"[0-9a-f]{40}", self.commit):
            raise ValueError("a commit has 40 hex digits")
        return self


class Target(Model):
    """What a stack is built on for one generation."""

    soc: str | None = Field(default=None, description="SOC_VERSION of the kernels that are compiled")
    bases: dict[str, str] = Field(min_length=1, description="operating system -> image; the first is taken")
    source: str
    evidence: str | None = Field(default=None, description="what is known of this combination, if little")


class Driver(Model):
    """Which drivers (HDK) on the host the stack's CANN runs with."""

    minimum: str
    paired: str | None = None
    source: str


class Index(Model):
    """A package index besides PyPI."""

    url: str
    why: str


class Constraint(Model):
    """A bound that no package declares and that holds all the same."""

    pin: str
    why: str


class Override(Model):
    """One declaration of one package that this stack breaks on purpose; all others hold."""

    package: str
    declares: str
    instead: str | None = Field(default=None, description="what is required in its place; null for nothing")
    why: str
    verdict: str


class Resolve(Model):
    """How the whole set is resolved from the pins."""

    exclude_newer: str | None = Field(default=None, pattern=r"^\d{4}-\d\d-\d\d$")
    universal: bool = Field(default=False, description="one lock for every machine and Python 3.10 to 3.12")
    constraints: list[Constraint] = Field(default_factory=list)
    overrides: list[Override] = Field(default_factory=list)
    pip_check: list[str] = Field(default_factory=list, description="all that `pip check` may say, literally")


class Stack(Model):
    """What is installed together; `packages` are PyPI names or, with `git`, repositories."""

    stack: str
    title: str
    python: str
    cann: str | None = None
    driver: Driver | None = None
    targets: dict[Generation, Target] = Field(min_length=1)
    default_for: list[Generation] = Field(default_factory=list)
    packages: dict[str, Pin]
    components: dict[str, list[str]] = Field(default_factory=dict, description="what --without leaves out")
    indexes: dict[str, Index] = Field(default_factory=dict)
    resolve: Resolve = Field(default_factory=Resolve)
    image: str | None = Field(default=None, description="a published image with this stack, if there is one")
    notes: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_are_known(self) -> "Stack":
        for component, names in self.components.items():
            if unknown := sorted(set(names) - set(self.packages)):
                raise ValueError(f"component {component} names {', '.join(unknown)}, which packages has not")
        for name, pin in self.packages.items():
            if pin.index and pin.index not in self.indexes:
                raise ValueError(f"{name} is from index '{pin.index}', which indexes has not")
        return self

    @property
    def generations(self) -> list[Generation]:
        """For which hardware the stack is."""
        return list(self.targets)

    @property
    def cpu(self) -> bool:
        """True when there is no NPU in this stack."""
        return self.generations == ["cpu"]

    def version(self, package: str) -> str | None:
        """The pinned version of a package; None when the stack does not pin it."""
        plain = _plain(package)
        return next((pin.version for name, pin in self.packages.items() if _plain(name) == plain), None)


def _plain(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
