"""A generation of Ascend hardware: its names, its chips, and how others call it."""

from collections.abc import Iterable

from pydantic import Field

from runner.core.spec import Model


class Hardware(Model):
    """One generation."""

    generation: str
    title: str
    chip: str = Field(description="in the tags of CANN images: 910b, a3, 950")
    device_type: str = Field(description="vllm_ascend._build_info.__device_type__ of a build for it")
    soc: str = Field(description="the SOC_VERSION that is taken when none is given")
    socs: list[str] = Field(description="every SOC_VERSION of it, lower case")
    suffixes: list[str] = Field(description="in the tags of vllm-ascend images, the current one first")
    minimum_cann: str | None = None
    source: str


class Product(Model):
    """A product that ms-swift is not supported on."""

    product: str
    names: list[str] = Field(description="other spellings, among them chips and socs")
    reason: str
    source: str


def generation_of(soc: str, known: Iterable[Hardware]) -> Hardware | None:
    """The generation that a SOC_VERSION belongs to, in any case of letters."""
    name = soc.lower().replace(" ", "_")
    return next((h for h in known if name in h.socs or (h.chip == "950" and "ascend950" in name)), None)
