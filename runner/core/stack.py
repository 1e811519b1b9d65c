"""A stack: a named set of pins, with the generations it is for."""

from typing import Literal

from pydantic import Field

from runner.core.spec import Model

Generation = Literal["A2", "A3", "950", "cpu"]


class Pin(Model):
    """One package at one version, and where that is known from."""

    version: str
    source: str = ""


class Stack(Model):
    """What is installed together; `packages` are PyPI names."""

    stack: str
    title: str
    generations: list[Generation] = Field(min_length=1)
    python: str
    cann: str | None = None
    packages: dict[str, Pin]
    image: str | None = Field(default=None, description="a published image with this stack, if there is one")
    notes: list[str] = Field(default_factory=list)

    @property
    def cpu(self) -> bool:
        """True when there is no NPU in this stack."""
        return self.generations == ["cpu"]

    def version(self, package: str) -> str | None:
        """The pinned version of a package; None when the stack does not pin it."""
        pin = self.packages.get(package)
        return pin.version if pin else None
