"""From a stack to the Dockerfile of one generation; the same input gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from runner.core.hardware import Hardware
from runner.core.lockfile import canonical
from runner.core.stack import Pin, Stack
from runner.data.stacks import locks_of
from runner.data.support import load_hardware
from runner.errors import UsageError

DNF = ("openeuler",)
_APT_NPU = (
    "ca-certificates curl git gcc g++ make cmake numactl libnuma-dev "
    "libgl1 libglib2.0-0 libsndfile1 libjemalloc2"
)
_DNF_NPU = "ca-certificates curl git gcc gcc-c++ make cmake numactl numactl-devel mesa-libGL glib2 jemalloc"
_APT_CPU = "ca-certificates git python3 python3-venv"


@dataclass(frozen=True)
class Variant:
    """What one image of a stack is for, and what it leaves out."""

    generation: str
    os: str
    base: str
    soc: str | None
    without: tuple[str, ...] = ()
    cache: bool = False  # cache mounts, which only BuildKit knows


def variant_of(stack: Stack, generation: str, **changes: object) -> Variant:
    """The stack's own choice for a generation, with these changes; UsageError when it has none for it."""
    target = stack.targets.get(generation)  # type: ignore[call-overload]
    if target is None:
        message = f"stack '{stack.stack}' is for {', '.join(stack.generations)}, not {generation}"
        raise UsageError(message, hint="`python build_image.py list` shows all stacks")
    os = str(changes.get("os") or next(iter(target.bases)))
    if os not in target.bases and not changes.get("base"):
        message = f"stack '{stack.stack}' has no base image with {os} for {generation}"
        raise UsageError(message, hint="it has " + ", ".join(target.bases))
    kept = {k: v for k, v in changes.items() if v is not None and k != "os"}
    return Variant(
        **{"generation": generation, "os": os, "base": target.bases.get(os, ""), "soc": target.soc, **kept}
    )


def render(stack: Stack, variant: Variant, locks: Mapping[str, str], catalogue: Path) -> str:
    """The Dockerfile; `locks` are the texts of the stack's locks by file name."""
    left_out = {n for c in variant.without for n in stack.components[c]}
    pins = {n: p for n, p in stack.packages.items() if n not in left_out}
    text = _template(catalogue).render(
        stack=stack.stack,
        title=stack.title,
        generation=variant.generation,
        os=variant.os,
        base=variant.base,
        soc=variant.soc,
        npu=not stack.cpu,
        own_python=stack.cpu,
        notes=_notes(stack, variant),
        cache=variant.cache,
        packager="dnf" if variant.os.startswith(DNF) else "apt",
        system_packages=_system_packages(stack, variant, pins),
        locks=[f"Dockerfiles/locks/{name}" for name in sorted(locks)],
        lock_here="/lock/"
        + (f"{stack.stack}.txt" if stack.resolve.universal else f"{stack.stack}-$(uname -m).txt"),
        layers=_layers(stack, variant, pins),
        indexes={name: index.url for name, index in stack.indexes.items()},
        vllm=pins["vllm"].version if "vllm" in pins else None,
        vllm_ascend=_kernels(pins),
        repositories=[_repository(n, p) for n, p in pins.items() if p.git],
        record=record_path(stack, variant),
        labels=labels(stack, variant, pins, locks),
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def rendered(stack: Stack, catalogue: Path) -> dict[str, str]:
    """What is committed of a stack: for each generation a Dockerfile, and what the image says of itself."""
    locks = locks_of(stack)
    hardware = {h.generation: h for h in load_hardware()}
    files = {}
    for generation in stack.generations:
        variant = variant_of(stack, generation)
        files[f"{stack.stack}-{generation}.Dockerfile"] = render(stack, variant, locks, catalogue)
        files[f"{stack.stack}-{generation}.json"] = image_record(
            stack, variant, hardware.get(generation), locks
        )
    return files


def record_path(stack: Stack, variant: Variant) -> str:
    """Where the image's record is in the folder that docker builds from."""
    return f"Dockerfiles/rendered/{stack.stack}-{variant.generation}.json"


def image_record(stack: Stack, variant: Variant, hardware: Hardware | None, locks: Mapping[str, str]) -> str:
    """What the image says of itself in /opt/ascend-runner/stack.json."""
    left_out = {n for c in variant.without for n in stack.components[c]}
    record = {
        "schema": "stack/1",
        "stack": stack.stack,
        "generation": variant.generation,
        "soc": variant.soc,
        "device_type": hardware.device_type if hardware else None,
        "cann": stack.cann,
        "python": stack.python,
        "os": variant.os,
        "base": variant.base,
        "driver": stack.driver.model_dump(exclude_none=True) if stack.driver else None,
        "packages": {n: _version(p) for n, p in stack.packages.items() if n not in left_out},
        "without": list(variant.without),
        "locks": {name: digest(text) for name, text in sorted(locks.items())},
        "overrides": [o.model_dump() for o in stack.resolve.overrides if o.package not in left_out],
        "pip_check": stack.resolve.pip_check,
        "evidence": stack.targets[variant.generation].evidence,  # type: ignore[index]
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def labels(
    stack: Stack, variant: Variant, pins: Mapping[str, Pin], locks: Mapping[str, str]
) -> dict[str, str]:
    """The image's labels: OCI's own, and the whole stack."""
    ours = {
        "stack": stack.stack,
        "generation": variant.generation,
        "soc": variant.soc,
        "cann": stack.cann,
        "python": stack.python,
        "os": variant.os,
        "driver.minimum": stack.driver.minimum if stack.driver else None,
        "driver.paired": stack.driver.paired if stack.driver else None,
        "without": ",".join(variant.without) or None,
        **{f"package.{canonical(n)}": _version(p) for n, p in pins.items()},
        **{f"lock.{name.removesuffix('.txt')}": digest(text) for name, text in sorted(locks.items())},
    }
    swift = pins["ms-swift"].version
    return {
        "org.opencontainers.image.title": f"ms-swift for {variant.generation}",
        "org.opencontainers.image.description": stack.title,
        "org.opencontainers.image.version": swift,
        "org.opencontainers.image.base.name": variant.base,
        **{f"org.ascend-runner.{k}": v for k, v in ours.items() if v is not None},
    }


def digest(text: str) -> str:
    """The digest of a text, as labels and records name it."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@cache
def _template(catalogue: Path) -> Template:
    environment = Environment(
        loader=FileSystemLoader([catalogue, catalogue / "partials"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["quoted"] = lambda value: json.dumps(value, ensure_ascii=False).replace("$", "\\$")
    return environment.get_template("Dockerfile.j2")


def _version(pin: Pin) -> str:
    return f"{pin.version}@{pin.commit}" if pin.commit else pin.version


def _notes(stack: Stack, variant: Variant) -> list[str]:
    evidence = stack.targets[variant.generation].evidence  # type: ignore[index]
    return [*([evidence.strip()] if evidence else []), *stack.notes]


def _system_packages(stack: Stack, variant: Variant, pins: Mapping[str, Pin]) -> Sequence[str]:
    if stack.cpu:
        return _APT_CPU.split()
    dnf = variant.os.startswith(DNF)
    needed = "triton-ascend" in pins  # it calls clang when it compiles; vllm-ascend's Dockerfile: clang-15
    compiler = [] if not needed else ["clang"] if dnf else ["clang-15"]
    return [*(_DNF_NPU if dnf else _APT_NPU).split(), *compiler]


def _layers(stack: Stack, variant: Variant, pins: Mapping[str, Pin]) -> list[str]:
    names = {canonical(n) for n in pins}
    components = [f"{c}-packages" for c in stack.components if c not in variant.without]
    alone = [n for n in ("vllm", "vllm-ascend", "ms-swift", "triton-ascend") if n in names]
    return ["build", "torch", "packages", *components, *alone]


def _kernels(pins: Mapping[str, Pin]) -> dict[str, str] | None:
    pin = pins.get("vllm-ascend")
    if pin is None or pin.kernels is None:
        return None
    return {"version": pin.version, "git": pin.kernels.git, "commit": pin.kernels.commit}


def _repository(name: str, pin: Pin) -> dict[str, object]:
    on_path = name == "Megatron-LM"  # not installed: ms-swift finds it by MEGATRON_LM_PATH
    return {"name": name, "version": pin.version, "git": pin.git, "commit": pin.commit, "on_path": on_path}
