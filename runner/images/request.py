"""What one image is to be built of and with, and what docker is told for that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from runner.core.site import Mirrors
from runner.core.stack import Stack
from runner.errors import UsageError
from runner.images.engine import PLATFORMS
from runner.images.render import Variant
from runner.images.supply import ARGUMENT, Supply


@dataclass(frozen=True)
class Request:
    """One image for one architecture."""

    stack: Stack
    variant: Variant
    arch: str
    tags: tuple[str, ...]
    mirrors: Mirrors = field(default_factory=Mirrors)
    supply: Supply = field(default_factory=Supply)
    proxies: Mapping[str, str] = field(default_factory=dict)  # http_proxy and its like
    swift_ref: str | None = None  # what the tag says
    swift_commit: str | None = None  # what is installed
    allow_unlocked: bool = False
    kernels: bool = True
    buildkit: bool = True
    no_cache: bool = False
    commit: str = "unknown"

    @property
    def base(self) -> str:
        """The base image, from the mirror of its registry when the site has one."""
        name = self.variant.base
        host, slash, rest = name.partition("/")
        mirror = self.mirrors.registries.get(host) if slash else None
        return f"{mirror.rstrip('/')}/{rest}" if mirror else name


def build_environment(request: Request, base_digest: str, address: str | None) -> dict[str, str]:
    """The build arguments by name; docker takes them from its environment, so no command line shows them."""
    mirrors = request.mirrors
    given = {
        "BASE_IMAGE": request.base if request.base != request.variant.base else "",
        "BASE_DIGEST": base_digest,
        "APT_MIRROR": re.sub(r"/(ubuntu|ubuntu-ports|debian)?/?$", "", mirrors.apt or ""),
        "DNF_MIRROR": (mirrors.dnf or "").rstrip("/"),
        "SWIFT_REF": request.swift_commit or "",
        "ALLOW_UNLOCKED": "1" if request.allow_unlocked else "",
        "COMPILE_CUSTOM_KERNELS": "" if request.kernels else "0",
        "BUILDER_COMMIT": request.commit,
        ARGUMENT: address or "",
    }
    for name in ("apt", "dnf"):
        if "@" in (getattr(mirrors, name) or "").partition("://")[2].partition("/")[0]:
            message = f"mirrors.{name} has a password in its address, which would end in the image's history"
            raise UsageError(message, hint="use a mirror that asks for none, or a proxy")
    return {k: v for k, v in {**given, **request.proxies}.items() if v}


def build_command(request: Request, arguments: Mapping[str, str], *, cross: bool) -> list[str]:
    """What follows `docker`; the last word, the context folder, is still to come."""
    argv = ["build", "--network=host", "-f", "Dockerfile"]
    argv += ["--platform", PLATFORMS[request.arch]] if cross else []
    argv += ["--progress=plain"] if request.buildkit else []
    argv += ["--no-cache"] if request.no_cache else []
    for tag in request.tags:
        argv += ["-t", tag]
    for name in arguments:
        argv += ["--build-arg", name]
    return argv


def secrets_of(request: Request) -> list[str]:
    """What must not be seen in a log: each `name:password` of an address."""
    supply = request.supply
    addresses = [supply.index_url or "", *supply.extra_index_urls, *supply.git_mirrors.values()]
    addresses += [*supply.indexes.values(), *request.proxies.values()]
    found = {m[1] for a in addresses if (m := re.match(r"\w+://([^/@]+)@", a))}
    passwords = {s.partition(":")[2] for s in found}
    return sorted((s for s in found | passwords if s), key=len, reverse=True)
