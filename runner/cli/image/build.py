"""`build_image.py build`: check, render, build, verify, and write down what happened."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from runner.cli import complete, options

if TYPE_CHECKING:
    from runner.core.buildlog import BuildStep
    from runner.errors import Finding
    from runner.images.engine import Engine
    from runner.images.request import Request

_PACKAGES = ("torch", "torchvision", "torchaudio", "torch_npu", "vllm", "vllm_ascend", "triton_ascend")
_MODELSCOPE = {
    "soc_version": "soc",
    "python_version": "python",
    "base_image": "base",
    "swift_branch": "swift_ref",
}


def _modelscopes(command: Callable[..., Any]) -> Callable[..., Any]:
    """The flags of modelscope's builder, as parameters that `_as_ours` puts in their place."""
    versions = [f"--{name}_version" for name in _PACKAGES]
    for flag in ("--image_type", *(f"--{name}" for name in _MODELSCOPE), *versions):
        command = click.option(flag, hidden=True)(command)
    return click.option("--dry_run", "dry_run_", is_flag=True, hidden=True)(command)


@click.command("build")
@click.option("--generation", metavar="NAME", help="A2, A3, 950 or cpu; on an Ascend host it is detected.")
@click.option("--stack", metavar="NAME", shell_complete=complete.stacks, help="Else the generation's own.")
@click.option("--soc", metavar="NAME", help="SOC_VERSION of the kernels, such as ascend910b1.")
@click.option("--arch", type=click.Choice(["arm", "x86", "both"]), help="Else this machine's.")
@click.option("--os", metavar="NAME", help="ubuntu22.04 or openeuler24.03, whichever the stack has.")
@click.option("--python", metavar="VERSION", help="Take a stack for this Python.")
@click.option("--base", metavar="IMAGE", help="Another base image.")
@click.option("--without", metavar="NAME,...", help="Leave components out, such as vllm,megatron.")
@click.option("--swift-ref", metavar="REF", help="A branch or tag of ms-swift instead of the locked release.")
@click.option("--registry", metavar="NAME", help="What comes before the tag; else DOCKER_REGISTRY, ms-swift.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="The whole name; may be given twice.")
@click.option("--push", is_flag=True, help="Push it when it is built, and print the digest.")
@click.option("--mirror", "mirrors", multiple=True, metavar="WHAT=URL",
              help="pip=, apt=, dnf=, registry.HOST=, git.HOST=, index.NAME=; over the site's.")  # fmt: skip
@click.option("--wheelhouse", metavar="FOLDER", help="Take packages from here only.")
@click.option("--ca-bundle", metavar="FILE", help="Certificates to trust during the build.")
@click.option("--allow-unlocked", is_flag=True, help="Build without what is not locked and cannot be had.")
@click.option(
    "--no-kernels", is_flag=True, help="Without vllm-ascend's own kernels: for checks without CANN."
)
@click.option("--builder", type=click.Choice(["auto", "buildkit", "classic"]), default="auto",
              show_default=True)  # fmt: skip
@click.option(
    "--cache-mounts", "cache", is_flag=True, help="Keep pip's downloads between builds; BuildKit only."
)
@click.option("--no-cache", is_flag=True, help="Build every step anew.")
@click.option("--dry-run", is_flag=True, help="Check, and print the Dockerfile and the command.")
@click.option("--verbose", "-v", is_flag=True, help="Print all that docker prints.")
@options.as_json
@_modelscopes
def command(**given: Any) -> int:
    """Build the image of a generation. Nothing is begun that is known not to work."""
    from runner.cli.image.asked import ordered, within_reach
    from runner.errors import RunnerError, SpecError
    from runner.images.context import builder_commit
    from runner.images.engine import find_engine

    given = {**_as_ours(given), "commit": builder_commit()}
    engine, absent = None, None
    if not given["dry_run"]:
        try:
            engine = find_engine()
        except RunnerError as e:
            absent = e  # what cannot be built at all is said first
    requests, findings = ordered(given, engine)
    if engine and not _errors(findings):
        findings = [*findings, *within_reach(requests)]
    if _errors(findings):
        raise SpecError(findings)
    if absent:
        raise absent
    _show(findings)
    if engine is None:
        return _dry(requests, findings, as_json=given["as_json"])
    how = {name: given[name] for name in ("verbose", "push", "as_json")}
    records = [_build(engine, r, **how) for r in requests]
    if len(requests) > 1 and given["push"]:
        _join(engine, requests)
    if given["as_json"]:
        options.print_json("builds/1", {"builds": records})
    return 0


def _as_ours(given: dict[str, Any]) -> dict[str, Any]:
    """The options with modelscope's flags in their place."""
    if (kind := given.pop("image_type")) not in (None, "ascend"):
        raise click.UsageError(f"--image_type {kind}: only images for Ascend NPUs are built here")
    for theirs, ours in _MODELSCOPE.items():
        value = given.pop(theirs)
        given[ours] = given[ours] or value
    given["dry_run"] = given["dry_run"] or given.pop("dry_run_")
    given["versions"] = {n.replace("_", "-"): given.pop(f"{n}_version") for n in _PACKAGES}
    given["without"] = [n for n in (given["without"] or "").split(",") if n]
    given["kernels"] = not given.pop("no_kernels")
    return given


def _errors(findings: list[Finding]) -> bool:
    return any(f.severity == "error" for f in findings)


def _show(findings: list[Finding]) -> None:
    from runner.core.yamltext import format_finding

    for found in findings:
        click.echo(format_finding(found), err=True)


def _dry(requests: list[Request], findings: list[Finding], *, as_json: bool) -> int:
    """Say what would be done; the Dockerfile goes to stdout alone, so that it can be kept."""
    import shlex

    from runner.core.document import finding_json

    told = [_told(r) for r in requests]
    if as_json:
        options.print_json("dry-run/1", {"builds": told, "findings": [finding_json(f) for f in findings]})
        return 0
    for request in requests:
        variant = request.variant
        where = f"{variant.generation} ({variant.soc or 'no NPU'}) from stack {request.stack.stack}"
        click.echo(f"would build {where}, {request.arch}\n  on   {request.base}", err=True)
        for tag in request.tags:
            click.echo(f"  as   {tag}", err=True)
    for one in told:
        click.echo(f"  with {shlex.join(one['command'])}", err=True)
    click.echo(told[0]["dockerfile"], nl=False)
    return 0


def _told(request: Request) -> dict[str, Any]:
    from runner.images.context import dockerfile
    from runner.images.request import build_command, build_environment, secrets_of

    arguments = build_environment(request, "", None)
    hidden = secrets_of(request)
    shown = {k: "***" if any(s in v for s in hidden) else v for k, v in arguments.items()}
    argv = build_command(request, arguments, cross=False)
    return {
        "stack": request.stack.stack,
        "generation": request.variant.generation,
        "soc": request.variant.soc,
        "arch": request.arch,
        "base": request.base,
        "tags": list(request.tags),
        "command": ["docker", *(f"{w}={shown[w]}" if w in shown else w for w in argv), "."],
        "dockerfile": dockerfile(request),
    }


def _build(engine: Engine, request: Request, *, verbose: bool, push: bool, as_json: bool) -> dict[str, Any]:
    from runner.data.support import load_build_rules
    from runner.images.build import BuildError, Watch, build, record_folder
    from runner.images.push import push_image
    from runner.store.folders import default_home

    folder = record_folder(default_home(), request.tags[0])
    click.echo(f"building {request.tags[0]} on {request.base}", err=True)
    progress = _Progress(verbose=verbose)
    try:
        record = build(engine, request, folder, load_build_rules(), Watch(progress.step, progress.line))
    except BuildError as e:
        progress.end()
        if not verbose:
            for line in e.lines:
                click.echo(f"  | {line}", err=True)
        raise
    progress.end()
    size = record["image"]["bytes"] / 1e9
    click.echo(
        f"built in {record['seconds']:.0f} s, {size:.2f} GB; the record: {folder / 'build.json'}", err=True
    )
    for missing in record["missing"]:
        click.echo(f"warning: it lacks {missing}", err=True)
    for check in record["checks"]:
        if check["ok"] is None:
            click.echo(f"warning: not checked here: {check['name']} ({check['detail']})", err=True)
    if push:
        record["pushed"] = {tag: push_image(engine, tag, progress.line) for tag in request.tags}
    for tag in request.tags:
        click.echo(f"{tag} {record['pushed'][tag]}" if push else tag, err=as_json)
    return record


def _join(engine: Engine, requests: list[Request]) -> None:
    """One name for both architectures beside the two."""
    from runner.images.push import join

    for parts in zip(*(r.tags for r in requests), strict=True):
        name = parts[0].rpartition("-")[0]
        click.echo(f"{name} {join(engine, name, list(parts))}")


class _Progress:
    """One line a step; on a terminal the last one says how long it takes."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._live = sys.stderr.isatty() and not verbose
        self._began = time.monotonic()
        self._what = ""

    def step(self, step: BuildStep) -> None:
        self.end()
        self._began, self._what = time.monotonic(), step.what[:100]
        if not self._verbose:
            click.echo(f"  {self._what}", err=True, nl=not self._live)

    def line(self, text: str) -> None:
        if self._verbose:
            click.echo(text, err=True)
        elif self._live and self._what:
            took = time.monotonic() - self._began
            click.echo(f"\r  {self._what}  {took:.0f} s", err=True, nl=False)

    def end(self) -> None:
        if self._live and self._what:
            click.echo(f"\r  {self._what}  {time.monotonic() - self._began:.0f} s", err=True)
        self._what = ""
