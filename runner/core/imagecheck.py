"""What would make an image useless, said before it is built: choice and pins against what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from runner.core import support as tables
from runner.core.hardware import Hardware, Product, generation_of
from runner.core.parse.cann import Cann, parse_cann
from runner.core.parse.tags import ImageTag, parse_tag
from runner.core.stack import Pin, Stack
from runner.core.support import Support, SwiftRow, VllmAscendRow
from runner.core.wording import did_you_mean, listing, shown
from runner.errors import Finding, UsageError

T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """What one image is to be built of and with."""

    generation: str
    soc: str | None
    base: str
    os: str
    python: str
    arch: str  # arm, x86 or both
    without: tuple[str, ...] = ()
    swift_ref: str | None = None
    buildkit: bool = True
    cache_mounts: bool = False
    emulation: bool = True


def check_image(
    stack: Stack,
    choice: Choice,
    support: Support,
    hardware: Sequence[Hardware],
    unsupported: Sequence[Product],
) -> list[Finding]:
    """All that speaks against this image, errors first; with no error among them it can be built."""
    image = _image(stack, choice, support, hardware, unsupported)
    found = dict.fromkeys(f for check in _CHECKS for f in check(image))
    return sorted(found, key=lambda f: ("error", "warning", "note").index(f.severity))


@dataclass(frozen=True)
class _Image:
    stack: Stack
    choice: Choice
    support: Support
    hardware: Sequence[Hardware]
    unsupported: Sequence[Product]
    pins: Mapping[str, Pin]  # what the image holds, by normalised name
    tag: ImageTag | None
    cann: Cann | None
    vllm_ascend: VllmAscendRow | None
    swift_ref: str | None
    swift: SwiftRow | None

    def version(self, package: str) -> str | None:
        """The version of a package in the image; None when it is not there or its pin says none."""
        pin = self.pins.get(package)
        return pin.version if pin and tables.read_version(pin.version) else None


def _image(
    stack: Stack, choice: Choice, support: Support, hardware: Sequence[Hardware], bad: Sequence[Product]
) -> _Image:
    left_out = {name for component in choice.without for name in stack.components.get(component, ())}
    pins: dict[str, Pin] = {canonicalize_name(k): v for k, v in stack.packages.items() if k not in left_out}
    plugin, swift = pins.get("vllm-ascend"), pins.get("ms-swift")
    ref = choice.swift_ref or (swift.version if swift else None)
    tag, cann = _read_or_none(parse_tag, choice.base), _read_or_none(parse_cann, stack.cann or "")
    row = tables.vllm_ascend_row(support, plugin.version) if plugin else None
    swift_is = tables.swift_row(support, ref) if ref else None
    return _Image(stack, choice, support, hardware, bad, pins, tag, cann, row, ref, swift_is)


def _read_or_none(read: Callable[[str], T], text: str) -> T | None:
    try:
        return read(text)
    except UsageError:
        return None


def _engine(image: _Image) -> Iterator[Finding]:
    choice = image.choice
    if unknown := sorted(set(choice.without) - set(image.stack.components)):
        known = sorted(image.stack.components)
        tail = did_you_mean(unknown[0], known)
        message = f"--without {unknown[0]}: stack {image.stack.stack} has no such component{tail}"
        yield Finding("unknown-component", message, hint=f"components: {listing(known) or 'none'}")
    if choice.cache_mounts and not choice.buildkit:
        message = "cache mounts are asked for, but this engine builds without BuildKit"
        yield Finding("cache-mounts", message, hint="leave the cache mounts out, or use docker buildx")
    if choice.arch == "both" and not (choice.buildkit and choice.emulation):
        lacks = "emulation of the other architecture" if choice.buildkit else "buildx"
        hint = "build --arch arm and --arch x86, each on a machine of its own, and join them to one manifest"
        yield Finding("both-arches", f"--arch both: this engine has no {lacks}", hint=hint)


def _generation(image: _Image) -> Iterator[Finding]:
    choice, known = image.choice, [h.generation for h in image.hardware]
    for word in filter(None, (choice.generation, choice.soc)):
        if product := tables.product_of(word, image.unsupported):
            message = f"{word} is {product.product}: {product.reason} ({product.source})"
            yield Finding("unsupported-product", message, hint=f"supported are {listing(known)}")
    if choice.generation not in (*known, "cpu"):
        if not tables.product_of(choice.generation, image.unsupported):
            message = f"unknown generation {shown(choice.generation)}{did_you_mean(choice.generation, known)}"
            yield Finding("unknown-generation", message, hint=f"generations: {listing(known)}, cpu")
    elif choice.generation not in image.stack.targets:
        message = f"stack {image.stack.stack} is not for {choice.generation}"
        yield Finding("target", message, hint=f"it is for {listing(image.stack.generations)}")
    if choice.soc and not tables.product_of(choice.soc, image.unsupported):
        yield from _soc(choice.soc, image)


def _soc(soc: str, image: _Image) -> Iterator[Finding]:
    of, wanted = generation_of(soc, image.hardware), image.choice.generation
    fitting = next((h.socs for h in image.hardware if h.generation == wanted), [])
    if of is None:
        tail = did_you_mean(soc.lower(), [s for h in image.hardware for s in h.socs])
        hint = f"names of {wanted}: {listing(fitting)}" if fitting else None
        yield Finding("unknown-soc", f"no generation has the SOC_VERSION {shown(soc)}{tail}", hint=hint)
    elif of.generation != wanted:
        message = f"SOC_VERSION {soc} is {of.generation}, but the image is for {wanted} ({of.source})"
        yield Finding("soc", message, hint=f"names of {wanted}: {listing(fitting) or 'none'}")


def _base(image: _Image) -> Iterator[Finding]:
    choice, tag = image.choice, image.tag
    target = next((t for g, t in image.stack.targets.items() if g == choice.generation), None)
    bases = list(target.bases.values()) if target else []
    hint = f"of the stack: {listing(bases)}" if bases else None
    if tag is None:
        if choice.generation != "cpu":
            given = choice.base not in bases
            message = f"base {choice.base} cannot be read as an image with CANN, so nothing of it is checked"
            yield Finding("base-unread", message, "warning" if given else "error", hint=hint)
        return
    if tag.generation and tag.generation != choice.generation:
        product = tables.product_of(tag.chip or "", image.unsupported)
        what = f"{product.product}: {product.reason}" if product else f"chip {tag.chip or tag.generation}"
        message = f"base {choice.base} is for {tag.generation} ({what}), the image for {choice.generation}"
        if choice.soc:
            message += f" with SOC_VERSION {choice.soc}"
        yield Finding("base-chip", message, hint=hint)
    if tag.os and choice.os and not (tag.os.startswith(choice.os) or choice.os.startswith(tag.os)):
        yield Finding("base-os", f"base {choice.base} is on {tag.os}, --os is {choice.os}", hint=hint)
    if tag.cann and image.cann and parse_cann(tag.cann) != image.cann:
        message = f"base {choice.base} has CANN {tag.cann}, stack {image.stack.stack} has {image.stack.cann}"
        yield Finding("base-cann", message, hint=hint)


def _cann(image: _Image) -> Iterator[Finding]:
    choice, rows, said = image.choice, image.support.cann.rows, image.stack.cann
    if said and image.cann is None:
        message = f"{shown(said)} is no version of CANN{did_you_mean(said, [r.cann for r in rows])}"
        yield Finding("unknown-version", message, hint="a version looks like 9.0.0, 9.1.0-beta.3 or 8.3.rc1")
    cann = image.cann
    if cann is None:
        return
    row = next((r for r in rows if parse_cann(r.cann) == cann), None)
    hardware = next((h for h in image.hardware if h.generation == choice.generation), None)
    if row is None:
        yield tables.no_row("CANN", str(cann), sorted((r.cann for r in rows), key=parse_cann))
    if hardware is None:
        return
    if hardware.minimum_cann and cann < parse_cann(hardware.minimum_cann):
        message = f"{hardware.generation} needs CANN {hardware.minimum_cann}, the stack has {cann}"
        hint = f"take a stack with CANN {hardware.minimum_cann} or newer"
        yield Finding("generation-cann", f"{message} ({hardware.source})", hint=hint)
    tag, pythons = image.tag, row.chips.get(hardware.chip) if row else None
    if row and tag and tag.python and pythons != [] and _minor(tag.python) not in (pythons or ()):
        message = f"no base image of CANN {cann} for {hardware.chip} with Python {tag.python} is known"
        hint = f"known: Python {listing(pythons or ['none'])} ({row.source})"
        yield Finding("base-unknown", message, "warning", hint=hint)


def _python(image: _Image) -> Iterator[Finding]:
    stack, choice, tag = image.stack, image.choice, image.tag
    sides = {f"stack {stack.stack}": stack.python, "--python": choice.python}
    if tag and tag.python:
        sides[f"base {choice.base}"] = tag.python
    if stack.resolve.universal:
        del sides[f"stack {stack.stack}"]
    if len({_minor(v) for v in sides.values()}) > 1:
        message = "Python differs: " + ", ".join(f"{side} has {v}" for side, v in sides.items())
        yield Finding("python", message, hint=f"the stack is resolved for Python {stack.python}")
    python, npu = _minor(choice.python), tables.read_version(image.version("torch-npu") or "")
    allowed = [(f"vllm-ascend {r.tag}", r.pythons, r.source) for r in [image.vllm_ascend] if r]
    line = f"{npu.major}.{npu.minor}" if npu else None
    rows = [r for r in image.support.torch_npu.pythons if line in r.torch]
    allowed += [(f"torch_npu {npu}", r.pythons, r.source) for r in rows]
    for what, pythons, source in allowed:
        if python not in pythons:
            message = f"{what} does not run on Python {python} ({source})"
            yield Finding("python-allowed", message, hint=f"it runs on {listing(pythons)}")


def _torch(image: _Image) -> Iterator[Finding]:
    torch, npu = image.version("torch"), image.version("torch-npu")
    if torch and npu and tables.base_release(torch) != tables.base_release(npu):
        built_for, source = tables.base_release(npu), image.support.torch_npu.rows[0].source
        message = f"torch {torch} does not go with torch_npu {npu}, which is built for torch {built_for}"
        yield Finding("torch-npu", f"{message} ({source})", hint=f"pin torch {built_for}")
    row = next((r for r in image.support.torch.rows if torch and r.torch == tables.base_release(torch)), None)
    for name in ("torchvision", "torchaudio"):
        has, wants = image.version(name), getattr(row, name, None)
        if row and has and wants and not tables.same_version(has, wants):
            message = f"{name} {has} does not go with torch {torch}, whose {name} is {wants} ({row.source})"
            yield Finding("torch-family", message, hint=f"pin {name} {wants}")
        elif has and not wants:
            hint = f"rows: torch {listing(r.torch for r in image.support.torch.rows)}"
            yield Finding(
                "unknown-version", f"no row knows the {name} of torch {torch}", "warning", hint=hint
            )


def _torch_npu_cann(image: _Image) -> Iterator[Finding]:
    npu, cann = image.version("torch-npu"), image.stack.cann
    if not (npu and cann and image.cann):
        return
    rows = tables.torch_npu_rows(image.support, cann)
    if any(tables.fits("torch-npu", npu, r.torch_npu) for r in rows):
        return
    others = [r for r in image.support.torch_npu.rows if tables.fits("torch-npu", npu, r.torch_npu)]
    if rows and others:
        message = f"torch_npu {npu} is for CANN {listing(r.cann for r in others)}, the stack has {cann}"
        hint = f"for CANN {cann}: torch_npu {listing(v for r in rows for v in r.torch_npu)}"
        yield Finding("torch-npu-cann", f"{message} ({others[0].source})", hint=hint)
    else:
        hint = f"known for it: {listing(v for r in rows for v in r.torch_npu) or 'none'}"
        message = f"no row knows torch_npu {npu} with CANN {cann}"
        yield Finding("unknown-version", message, "warning", hint=hint)


def _x86_torch(image: _Image) -> Iterator[Finding]:
    pin, npu, rule = image.pins.get("torch"), image.version("torch-npu"), image.support.torch_npu.local_build
    if not pin or not npu or image.choice.arch not in (rule.arch, "both"):
        return
    if Version(tables.base_release(npu)) >= Version(rule.below):
        return
    build = pin.x86 or pin
    version = tables.read_version(build.version)
    wants = f"{tables.base_release(npu)}+{rule.local}"
    if not (version and version.local == rule.local and build.index in image.stack.indexes):
        message = (
            f"torch {build.version} for x86_64 is from {build.index or 'PyPI'}, but torch_npu {npu} asks "
            f"there for torch {wants}, which PyPI does not have ({rule.source})"
        )
        hint = f"pin torch's x86 to {wants} from a declared index of {rule.index}"
        yield Finding("x86-torch", message, hint=hint)
    elif pin.x86 and tables.base_release(pin.version) != tables.base_release(build.version):
        message = f"torch is {pin.version}, but {build.version} for x86_64"
        yield Finding("x86-torch", message, hint="pin the same release for both")


def _vllm_ascend(image: _Image) -> Iterator[Finding]:
    pin, row, rows = image.pins.get("vllm-ascend"), image.vllm_ascend, image.support.vllm_ascend.rows
    if pin is None:
        return
    if row is None:
        yield tables.no_row("vllm-ascend", pin.version, [r.tag.removeprefix("v") for r in rows])
        return
    for name, wants in row.wants.items():
        has = image.stack.cann if name == "cann" else image.version(name)
        if has and not tables.fits(name, has, wants):
            yield _differs(image, row, name, has, wants)
    chips = {h.generation for h in image.hardware if h.chip == "950"}
    if image.choice.generation in chips and not row.has_950:
        having = listing((r.tag for r in reversed(rows) if r.has_950), 6)
        message = f"vllm-ascend {row.tag} cannot be built for {image.choice.generation} ({row.source})"
        yield Finding("vllm-ascend-950", message, hint=f"these can: {having}; or --without vllm")


def _swift(image: _Image) -> Iterator[Finding]:
    ref, row, rows = image.swift_ref, image.swift, image.support.ms_swift.rows
    if ref is None:
        return
    if row is None:
        tags = [r.tag.removeprefix("v") for r in rows if r.tag != "main"]
        yield tables.no_row("ms-swift", ref.removeprefix("v"), tags)
        return
    for name, wants in row.wants.items():
        has = image.version(name)
        if has and not tables.fits(name, has, wants):
            yield _differs(image, row, name, has, wants)


def _differs(
    image: _Image, row: VllmAscendRow | SwiftRow, name: str, has: str, wants: Sequence[str] | SpecifierSet
) -> Finding:
    """What to say of a version that does not fit; on purpose, or as a branch has it, it is a warning."""
    asked = str(wants) if isinstance(wants, SpecifierSet) else listing(wants)
    package = "ms-swift" if isinstance(row, SwiftRow) else "vllm-ascend"
    branch = tables.branch_row(image.support, row) if isinstance(row, VllmAscendRow) else None
    code, label = f"{package}-{name}", "CANN" if name == "cann" else name
    message = f"{package} {row.tag} asks for {label} {asked}, the stack has {has} ({row.source})"
    if override := _overridden(image.stack, package, name, has):
        return Finding(code, message, "warning", hint=f"on purpose: {override}")
    if branch and tables.fits(name, has, branch.wants.get(name, [])):
        return Finding(code, message, "warning", hint=f"it fits {branch.source}")
    hint = f"pin {label} {asked}"
    if name == "cann":
        fitting = [r.tag for r in image.support.vllm_ascend.rows if tables.same_cann(has, r.cann)]
        hint += f"; for CANN {has}: vllm-ascend {listing(fitting) or 'none'}"
    return Finding(code, message, hint=hint)


def _undeclared(image: _Image) -> Iterator[Finding]:
    for rule in image.support.ms_swift.undeclared:
        floor = next(iter(SpecifierSet(rule.bound))).version
        capped = [who for who, s in _bounds(image, rule.requires) if tables.capped_below(s, floor)]
        least = next(iter(SpecifierSet(rule.versions))).version
        held = any(tables.capped_below(s, least) for _, s in _bounds(image, rule.package))
        pinned = image.version(rule.package)
        dated = image.stack.resolve.exclude_newer and pinned is None
        if capped and not held and not dated:
            has = f"{rule.package} {pinned or 'without a bound'}"
            message = f"{capped[0]} keeps {rule.requires} below {floor}, beside {has}: {rule.says}"
            hint = f"add the constraint {rule.package}<{least}, or resolve.exclude_newer"
            yield Finding("undeclared-bound", f"{message} ({rule.source})", hint=hint)


def _bounds(image: _Image, package: str) -> Iterator[tuple[str, SpecifierSet]]:
    """Who bounds a package, and how: its pin, the constraints, what other pins declare, vllm-ascend's row."""
    if version := image.version(package):
        yield "its pin", SpecifierSet(f"=={version}")
    sides = [("a constraint", c.pin) for c in image.stack.resolve.constraints]
    sides += [(name, text) for name, pin in image.pins.items() for text in pin.requires]
    if (row := image.vllm_ascend) and package == "numpy" and row.numpy:
        sides.append((f"vllm-ascend {row.tag}", f"numpy{row.numpy}"))
    broken = {(canonicalize_name(o.package), o.declares) for o in image.stack.resolve.overrides}
    for who, text in sides:
        requirement = tables.read_requirement(text)
        if requirement and canonicalize_name(requirement.name) == package and (who, text) not in broken:
            yield who, requirement.specifier


def _overridden(stack: Stack, package: str, name: str, has: str) -> str | None:
    """Why the stack breaks this declaration, when it says so."""
    for override in stack.resolve.overrides:
        declared = tables.read_requirement(override.declares)
        if not declared or canonicalize_name(override.package) != package:
            continue
        if canonicalize_name(declared.name) == name:
            instead = tables.read_requirement(override.instead or name)
            version = tables.read_version(has)
            if instead and version and instead.specifier.contains(version, prereleases=True):
                return override.why
    return None


def _git_only(image: _Image) -> Iterator[Finding]:
    for rule in image.support.ms_swift.git_only:
        pin = image.pins.get(rule.package)
        if pin and pin.git is None:
            message = f"{rule.package} {pin.version} is taken from {pin.index or 'PyPI'}: {rule.why}"
            yield Finding("git-only", f"{message} ({rule.source})", hint="pin it with git and commit")


def _unread(image: _Image) -> Iterator[Finding]:
    names = {"torch", "torch-npu", "torchvision", "torchaudio", "vllm"}
    names |= set(image.swift.bounds) if image.swift else set()
    for name, pin in image.pins.items():
        if name in names and not tables.read_version(pin.version):
            message = (
                f"{name} is at {shown(pin.version)}, which tells no version: it is compared with nothing"
            )
            yield Finding("unknown-version", message, "warning")


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])


_CHECKS = (
    *(_engine, _generation, _base, _cann, _python),
    *(_torch, _torch_npu_cann, _x86_torch, _vllm_ascend, _swift),
    *(_undeclared, _git_only, _unread),
)
