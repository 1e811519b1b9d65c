"""From the options of the builder to one request for each architecture."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from runner.cli.sitefile import load_site
from runner.core.imagecheck import Choice, check_image
from runner.core.imagename import full_tag, short_tag, swift_name
from runner.core.lockfile import ARCHES, read_lock
from runner.core.site import Mirrors, Site, environment
from runner.core.stack import Stack
from runner.data.stacks import load_stack, lock_of, machine_arch, stack_names
from runner.data.support import load_hardware, load_support, load_unsupported
from runner.errors import Finding, UsageError
from runner.images.choose import Asked, chosen_generation, chosen_stack
from runner.images.detect import detect_soc
from runner.images.engine import Engine
from runner.images.reach import commit_of, out_of_reach
from runner.images.render import Variant, variant_of
from runner.images.request import Request
from runner.images.supply import Supply

SWIFT = "https://github.com/modelscope/ms-swift.git"


def ordered(given: Mapping[str, Any], engine: Engine | None) -> tuple[list[Request], list[Finding]]:
    """The requests for these options, and what speaks against them; UsageError when they cannot be read."""
    site = load_site().site
    asked = _asked(given)
    stacks = [load_stack(asked.stack)] if asked.stack else [load_stack(n) for n in stack_names()]
    generation = chosen_generation(asked, load_hardware(), load_unsupported())
    if generation is None:
        raise UsageError("for which hardware?", hint="--generation A2, A3, 950 or cpu, or --soc ascend910b1")
    if asked.generation is None and given["soc"] is None:
        given = {**given, "soc": asked.soc}
    stack = chosen_stack(asked, generation, stacks)
    arches = ["arm", "x86"] if given["arch"] == "both" else [given["arch"] or machine_arch()]
    mirrors = with_mirrors(site, given["mirrors"])
    requests = [_request(stack, generation, arch, given, site, mirrors, engine) for arch in arches]
    choice = _choice(requests[0], given, engine)
    findings = check_image(stack, choice, load_support(), load_hardware(), load_unsupported())
    return requests, findings


def within_reach(requests: Sequence[Request]) -> list[Finding]:
    """What is not locked and cannot be had now, which only the network can tell."""
    found: list[Finding] = []
    for request in requests:
        path = lock_of(request.stack, request.arch)
        if not path.exists():
            hint = f"`python build_image.py lock {request.stack.stack}` makes it"
            found.append(Finding("no-lock", f"there is no lock {path.name}", hint=hint))
            continue
        found += out_of_reach(request, read_lock(path.read_text(encoding="utf-8"), path.name))
    return list(dict.fromkeys(found))


def with_mirrors(site: Site, options: Sequence[str]) -> Mirrors:
    """The site's mirrors, and over them `--mirror WHAT=ADDRESS`."""
    value: dict[str, Any] = site.mirrors.model_dump()
    names = {"pip": "pip_index_url", "apt": "apt", "dnf": "dnf"}
    tables = {"registry": "registries", "git": "git", "index": "indexes"}
    for option in options:
        what, sign, address = option.partition("=")
        table, dot, key = what.partition(".")
        if sign and address and what in names:
            value[names[what]] = address
        elif sign and address and dot and key and table in tables:
            value[tables[table]] = {**value[tables[table]], key: address}
        else:
            hint = "pip=URL, apt=URL, dnf=URL, registry.HOST=HOST, git.HOST=URL or index.NAME=URL"
            raise UsageError(f"--mirror '{option}' cannot be read", hint=hint)
    try:
        return Mirrors.model_validate(value)
    except ValidationError as e:
        error = e.errors()[0]
        where = ".".join(map(str, error["loc"]))
        raise UsageError(
            f"mirror {where}: {error['msg']}", hint="an address begins with http:// or https://"
        ) from None


def _asked(given: Mapping[str, Any]) -> Asked:
    soc = given["soc"]
    if soc is None and given["generation"] is None:
        soc = detect_soc()
    versions = {name: version for name, version in given["versions"].items() if version}
    return Asked(given["generation"], soc, given["stack"], given["python"], versions)


def _request(
    stack: Stack, generation: str, arch: str, given: Mapping[str, Any], site: Site, mirrors: Mirrors,
    engine: Engine | None,
) -> Request:  # fmt: skip
    ref = _own_ref(given["swift_ref"], stack)
    buildkit = _buildkit(given["builder"], engine)
    changes = {"os": given["os"], "base": given["base"], "soc": given["soc"]}
    variant = variant_of(
        stack, generation, without=tuple(given["without"]), cache=buildkit and given["cache"], **changes
    )
    tags, supply = _tags(stack, variant, arch, ref, given), _supply(given, site, mirrors, stack)
    request = Request(
        stack, variant, arch, tags, mirrors, supply,
        _proxies(site), swift_ref=ref, allow_unlocked=given["allow_unlocked"], kernels=given["kernels"],
        buildkit=buildkit, no_cache=given["no_cache"], commit=given["commit"],
    )  # fmt: skip
    if ref and not given["dry_run"]:
        return replace(request, swift_commit=commit_of(request, SWIFT, ref))
    return request


def _buildkit(builder: str, engine: Engine | None) -> bool:
    if builder == "buildkit" and engine and not engine.buildkit:
        raise UsageError("this docker has no BuildKit", hint="--builder classic, or install docker-buildx")
    return builder == "buildkit" or (builder == "auto" and (engine is None or engine.buildkit))


def _own_ref(ref: str | None, stack: Stack) -> str | None:
    """None when it is the locked release."""
    return None if ref in (None, stack.version("ms-swift"), f"v{stack.version('ms-swift')}") else ref


def _tags(
    stack: Stack, variant: Variant, arch: str, ref: str | None, given: Mapping[str, Any]
) -> tuple[str, ...]:
    if given["tags"]:
        return tuple(given["tags"])
    registry = given["registry"] or os.environ.get("DOCKER_REGISTRY") or "ms-swift"
    swift = swift_name(str(stack.version("ms-swift")), ref)
    chips = {h.generation: h.chip for h in load_hardware()}
    versions = {"cann": stack.cann, "torch_npu": stack.version("torch-npu")}
    full = full_tag(swift, chips.get(variant.generation), variant.os, stack.python, versions)
    return (
        f"{registry}:{short_tag(swift, variant.generation, stack.python, arch)}",
        f"{registry}:{full}{'-' + ARCHES[arch] if given['arch'] == 'both' else ''}",
    )


def _supply(given: Mapping[str, Any], site: Site, mirrors: Mirrors, stack: Stack) -> Supply:
    def path(option: str | None, own: str | None) -> Path | None:
        chosen = option or own
        return Path(chosen).expanduser().absolute() if chosen else None

    bundle = path(given["ca_bundle"], site.ca_bundle)
    if bundle and not bundle.is_file():
        raise UsageError(f"the CA bundle {bundle} is no file")
    wheelhouse = path(given["wheelhouse"], site.wheelhouse)
    if wheelhouse and not wheelhouse.is_dir():
        raise UsageError(
            f"the wheelhouse {wheelhouse} is no folder",
            hint=f"`python build_image.py wheelhouse {stack.stack} --to {wheelhouse}` fills one",
        )
    return Supply(
        mirrors.pip_index_url,
        tuple(mirrors.pip_extra_index_urls),
        bundle,
        wheelhouse,
        {f"https://{host}": url.rstrip("/") for host, url in mirrors.git.items()},
        dict(mirrors.indexes),
    )


def _proxies(site: Site) -> dict[str, str]:
    return {k: v for k, v in environment(site).items() if k.lower().endswith("_proxy")}


def _choice(request: Request, given: Mapping[str, Any], engine: Engine | None) -> Choice:
    variant, stack = request.variant, request.stack
    arch = given["arch"] or request.arch
    emulation = engine is None or all(engine.emulates(a) for a in ("arm", "x86"))
    return Choice(
        variant.generation, variant.soc, variant.base, variant.os, given["python"] or stack.python, arch,
        variant.without, request.swift_ref, request.buildkit, variant.cache, emulation,
    )  # fmt: skip
