"""What the reference of an image tells of the stack in it; there are many schemes, and all are in use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from runner.core.parse.cann import CANN_PATTERN
from runner.core.wording import printable, shown
from runner.errors import UsageError

Product = Literal["ms-swift", "vllm-ascend", "cann"]
TagGeneration = Literal["A2", "A3", "950", "310P", "910"]
Arch = Literal["arm", "x86"]


@dataclass(frozen=True)
class ImageTag:
    """A tag and what it says; None stands for what it does not say."""

    repository: str  # before the tag; empty when only a tag was given
    tag: str
    product: Product
    version: str | None  # of the product: v4.3.0, main
    generation: TagGeneration
    chip: str | None  # the hardware as the tag writes it: A2, 910b, a5
    cann: str | None
    torch_npu: str | None
    os: str | None  # ubuntu22.04, or ubuntu where the tag names no release
    python: str | None
    arch: Arch | None  # None: not said, and published images are for both
    scheme: str
    assumed: tuple[str, ...] = ()  # the fields that are implied, not written


def parse_tag(reference: str) -> ImageTag:
    """Read a reference such as `quay.io/ascend/ms-swift:v4.1.3-A3-py311`, or a tag alone."""
    repository, tag = _parts(reference)
    schemes = _schemes_of(repository)
    if tag.lower() == "latest":
        raise UsageError(
            f"{shown(reference)} does not tell which stack it is: 'latest' moves",
            hint=_examples(schemes),
        )
    for scheme in schemes:
        match = re.fullmatch(scheme.pattern, tag, re.IGNORECASE | re.ASCII)
        if match and (repository or _stands_alone(scheme, tag)):
            return _read(repository, tag, scheme, match.groupdict())
    of = f" of {schemes[0].product}" if _named(repository) else ""
    raise UsageError(
        f"the tag '{printable(tag[:MAX_TAG])}' fits no scheme{of}",
        hint=_examples(schemes),
    )


MAX_TAG: Final = 128

_HARDWARE: Final[dict[str, TagGeneration]] = {
    "a2": "A2",
    "910b": "A2",
    "a3": "A3",
    "a5": "950",
    "950": "950",
    "950dt": "950",
    "310p": "310P",
    "300i": "310P",
    "910": "910",
}
_ARCHES: Final[dict[str, Arch]] = {
    "arm": "arm",
    "arm64": "arm",
    "aarch64": "arm",
    "x86": "x86",
    "x86_64": "x86",
    "amd64": "x86",
}
_PRODUCTS: Final[tuple[Product, ...]] = ("ms-swift", "vllm-ascend", "cann")

_WORDS = "|".join(_HARDWARE)
_CHIP = rf"(?P<chip>{_WORDS})"
_ARCH = rf"(?P<arch>{'|'.join(_ARCHES)})"
_PYTHON = r"py(?P<python>3\.?[0-9]{1,2})"
_OS = r"(?P<os>(?:ubuntu|openeuler)[0-9]{2}\.[0-9]{2})"
_CANN = rf"(?P<cann>{CANN_PATTERN})"
_NPU = r"torch_npu(?P<torch_npu>[0-9]+\.[0-9a-z.]+)"
# A branch can have dashes, but what another field begins with is not part of it.
_SWIFT = r"(?P<version>[a-z0-9_][a-z0-9_.]*(?:-(?!cann[0-9]|torch_npu[0-9]|py3|ubuntu[0-9])[a-z0-9_.]*)*?)"
_RELEASE = r"v[0-9]+(?:\.[0-9]+)+(?:(?:a|b|rc|\.post|\.dev)[0-9]+)*"
# The hardware ends a tag of vllm-ascend and may be absent, so a branch must not swallow it.
_BRANCH = rf"(?:-(?!(?:{_WORDS}|openeuler|cann)(?:-|[0-9.]|$))[a-z0-9_.]+)*?"
_VLLM = rf"(?P<version>{_RELEASE}|main|nightly{_BRANCH})"


class _Scheme(NamedTuple):
    name: str
    product: Product
    example: str
    pattern: str


_SCHEMES: Final = (
    _Scheme(
        "swift-cann-npu",
        "ms-swift",
        "v4.5.2-cann9.1.0-torch_npu2.10.0.post2-910b-ubuntu22.04-py3.12",
        rf"{_SWIFT}-cann{_CANN}-{_NPU}-{_CHIP}-{_OS}-{_PYTHON}",
    ),
    _Scheme(
        "swift-python-cann",
        "ms-swift",
        "v4.3.0-A2-py311-CANN9.0.0-ubuntu22.04",
        rf"{_SWIFT}-{_CHIP}-{_PYTHON}-cann{_CANN}-{_OS}",
    ),
    _Scheme("swift-python", "ms-swift", "v4.1.3-A3-py311", rf"{_SWIFT}-{_CHIP}-{_PYTHON}"),
    _Scheme(
        "builder-long",
        "ms-swift",
        "main-cann9.1.0-torch_npu2.10.0.post4-a2-ubuntu22.04-py3.12-aarch64",
        rf"{_SWIFT}-cann{_CANN}-{_NPU}-{_CHIP}-{_OS}-{_PYTHON}-{_ARCH}",
    ),
    _Scheme("builder-short", "ms-swift", "main-A2-py311-arm", rf"{_SWIFT}-{_CHIP}-{_PYTHON}-{_ARCH}"),
    _Scheme(
        "cann",
        "cann",
        "9.1.0-beta.3-910b-ubuntu22.04-py3.12",
        rf"{_CANN}-{_CHIP}-{_OS}-{_PYTHON}(?:-devel)?",
    ),
    _Scheme("vllm-ascend", "vllm-ascend", "v0.18.0-a3", rf"{_VLLM}(?:-{_CHIP})?(?:-(?P<os>openeuler))?"),
)


def _parts(reference: str) -> tuple[str, str]:
    """The repository and the tag of a reference, its digest left out."""
    name, digest_sign, _ = reference.partition("@")
    path, slash, last = name.rpartition("/")
    image, colon, tag = last.partition(":")
    if (digest_sign and not colon) or name.startswith("sha256:"):
        raise UsageError(
            f"{shown(reference)} has a digest only, which tells nothing about the stack",
            hint="write the tag too: repository:tag@sha256:...",
        )
    host, host_colon, port = path.partition("/")[0].rpartition(":")
    if host and host_colon and not port.isdecimal():
        raise UsageError(
            f"{shown(reference)} has a '/' in its tag",
            hint="a tag holds no '/'; the branch feature/x is feature-x in a tag",
        )
    if (colon and not tag) or (not colon and (slash or _named(image) or not image)):
        raise UsageError(f"{shown(reference)} names no tag", hint=_examples(_schemes_of(name.rstrip(":"))))
    return (f"{path}{slash}{image}", tag) if colon else ("", image)


def _named(repository: str) -> Product | None:
    """The product that the last part of a repository names."""
    last = repository.rpartition("/")[2].lower()
    return next((p for p in _PRODUCTS if p == last), None)


def _schemes_of(repository: str) -> list[_Scheme]:
    """The schemes to try: any image may be tagged v1.0 or main, so only a name makes it vllm-ascend."""
    if product := _named(repository):
        return [s for s in _SCHEMES if s.product == product]
    return [s for s in _SCHEMES if not repository or s.product != "vllm-ascend"]


def _stands_alone(scheme: _Scheme, tag: str) -> bool:
    """Whether a tag can be told without a repository; v4.5.2 is a release of ms-swift, not a tag of it."""
    return scheme.product != "vllm-ascend" or not re.match(r"v[1-9]", tag, re.IGNORECASE)


def _examples(schemes: Iterable[_Scheme]) -> str:
    return f"tags look like {', '.join(s.example for s in schemes)}"


def _read(repository: str, tag: str, scheme: _Scheme, said: dict[str, str | None]) -> ImageTag:
    chip, os, python, arch, cann = (said.get(k) for k in ("chip", "os", "python", "arch", "cann"))
    bare = scheme.product == "vllm-ascend"  # without a suffix it is for A2, on ubuntu
    implied = {
        "product": _named(repository) is None,
        "generation": bare and chip is None,
        "os": bare and os is None,
    }
    return ImageTag(
        repository=repository,
        tag=tag,
        product=scheme.product,
        version=said.get("version"),
        generation=_HARDWARE[chip.lower()] if chip else "A2",
        chip=chip,
        cann=cann.lower() if cann else None,
        torch_npu=said.get("torch_npu"),
        os=os.lower() if os else "ubuntu" if bare else None,
        python=f"3.{python[1:].lstrip('.')}" if python else None,
        arch=_ARCHES[arch.lower()] if arch else None,
        scheme=scheme.name,
        assumed=tuple(name for name, is_implied in implied.items() if is_implied),
    )
