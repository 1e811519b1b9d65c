"""Builds one image and writes down what went in, how long each step took and what came out."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runner.core.buildfail import BuildRule, explain
from runner.core.buildlog import BuildLog, BuildStep
from runner.data.stacks import locks_of
from runner.errors import RunnerError
from runner.files import write_atomic
from runner.images.context import dockerfile, write_context
from runner.images.engine import Engine
from runner.images.render import digest
from runner.images.request import Request, build_command, build_environment, secrets_of
from runner.images.supply import served


class BuildError(RunnerError):
    """A step of a build failed; `lines` are its last ones."""

    code = "build"

    def __init__(self, message: str, lines: list[str], *, hint: str | None) -> None:
        super().__init__(message, hint=hint)
        self.lines = lines


@dataclass(frozen=True)
class Watch:
    """Who is told: each step as it begins, and each line."""

    step: Callable[[BuildStep], None]
    line: Callable[[str], None]


def build(
    engine: Engine, request: Request, folder: Path, rules: list[BuildRule], watch: Watch
) -> dict[str, Any]:
    """Build it; the record, which is also in `folder` beside the log. BuildError says which step failed."""
    folder.mkdir(parents=True, exist_ok=True)
    base = fetched_base(engine, request, watch)
    log, started = BuildLog(), time.monotonic()
    record = {"schema": "build/1", "state": "BUILDING", "started": round(time.time(), 3)}
    record |= _inputs(engine, request, base)
    _write(folder, record)
    try:
        code = _run(engine, request, folder, str(base["digest"]), log, watch)
        log.end(time.monotonic(), failed=code != 0)
        if code:
            record["state"] = "FAILED"
            raise _failed(log, rules, folder)
        record |= {"state": "BUILT", **_outcome(engine, request)}
    finally:
        record["seconds"] = round(time.monotonic() - started, 2)
        record["steps"] = [_step(s) for s in log.steps.values()]
        _write(folder, record)
    return record


def _write(folder: Path, record: Mapping[str, Any]) -> None:
    write_atomic(folder / "build.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def fetched_base(engine: Engine, request: Request, watch: Watch) -> dict[str, str | None]:
    """The base image's name and digest; it is pulled when it is not there."""
    found = engine.image(request.base)
    if found is None:
        watch.line(f"pulling {request.base}")
        try:
            engine.run("pull", "-q", *engine.platform(request.arch), request.base)
        except RunnerError as e:
            hint = "--base names another image, mirrors.registries in the site file another registry"
            raise RunnerError(f"the base image cannot be had: {e.message}", hint=hint) from None
        found = engine.image(request.base) or {}
    digests = [d.partition("@")[2] for d in found.get("RepoDigests") or []]
    return {"name": request.base, "digest": digests[0] if digests else found.get("Id", "unknown")}


def _run(
    engine: Engine, request: Request, folder: Path, base_digest: str, log: BuildLog, watch: Watch
) -> int:
    hidden = secrets_of(request)
    with (
        tempfile.TemporaryDirectory(prefix="image-") as context,
        served(request.supply) as address,
        (folder / "build.log").open("w", encoding="utf-8") as file,
    ):
        write_context(request, Path(context))
        arguments = build_environment(request, base_digest, address)
        argv = build_command(request, arguments, cross=request.arch != engine.arch)

        def take(line: str) -> None:
            for secret in hidden:
                line = line.replace(secret, "***")
            file.write(line + "\n")
            watch.line(line)
            if step := log.line(line, time.monotonic()):
                watch.step(step)

        env = {**arguments, "DOCKER_BUILDKIT": "1" if request.buildkit else "0"}
        return engine.stream([*argv, "."], env, take, cwd=Path(context))


def _failed(log: BuildLog, rules: list[BuildRule], folder: Path) -> BuildError:
    lines = list(log.tail())
    rule = explain(lines, rules)
    where = f"the whole log: {folder / 'build.log'}"
    said = f"{rule.cause}; {rule.fix} ({rule.code})\n  {where}" if rule else where
    what = log.failed.what if log.failed else "before its first step"
    return BuildError(f"the build failed at {what}", lines, hint=said)


def _inputs(engine: Engine, request: Request, base: Mapping[str, str | None]) -> dict[str, Any]:
    variant = request.variant
    return {
        "stack": request.stack.stack,
        "generation": variant.generation,
        "soc": variant.soc,
        "arch": request.arch,
        "os": variant.os,
        "without": list(variant.without),
        "swift_ref": request.swift_ref,
        "swift_commit": request.swift_commit,
        "kernels": request.kernels,
        "allow_unlocked": request.allow_unlocked,
        "base": dict(base),
        "locks": {name: digest(text) for name, text in locks_of(request.stack).items()},
        "builder": "buildkit" if request.buildkit else "classic",
        "engine": engine.server,
        "builder_commit": request.commit,
    }


def _outcome(engine: Engine, request: Request) -> dict[str, Any]:
    found = engine.image(request.tags[0]) or {}
    verified = json.loads(engine.read_file(request.tags[0], "/opt/ascend-runner/verified.json"))
    return {
        "image": {"id": found.get("Id"), "bytes": found.get("Size"), "tags": list(request.tags)},
        "dockerfile": digest(dockerfile(request)),
        "unlocked": verified["unlocked"],
        "missing": verified["missing"],
        "checks": verified["checks"],
    }


def _step(step: BuildStep) -> dict[str, Any]:
    return {k: v for k, v in asdict(step).items() if k != "key" and v is not False}


def record_folder(home: Path, tag: str) -> Path:
    """Where the record of a build goes: one folder a tag, time and process."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", tag)
    return home / "images" / f"{plain}-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
