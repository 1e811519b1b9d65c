"""The one door to the docker command line, as the builder uses it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import HostError, UnreachableError

PLATFORMS = {"x86": "linux/amd64", "arm": "linux/arm64"}


@dataclass(frozen=True)
class Engine:
    """A docker engine that answers, and what its client can do."""

    program: str
    server: str
    buildkit: bool
    buildx: bool
    arch: str

    def run(self, *args: str, stdin: str | None = None) -> str:
        """What a docker command prints; HostError with its own words when it fails."""
        done = subprocess.run(
            [self.program, *args], input=stdin, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise HostError(f"`docker {args[0]}` failed: {said[-1] if said else done.returncode}")
        return done.stdout

    def stream(
        self, args: Sequence[str], env: Mapping[str, str], say: Callable[[str], None], cwd: Path | None = None
    ) -> int:
        """Run a docker command and hand on each line that it prints; its exit code."""
        with subprocess.Popen(
            [self.program, *args], env={**os.environ, **env}, stdin=subprocess.DEVNULL, text=True, cwd=cwd,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
        ) as process:  # fmt: skip
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    say(line.rstrip("\n"))
            except KeyboardInterrupt:
                process.terminate()
                raise
        return process.returncode

    def image(self, reference: str) -> dict[str, Any] | None:
        """What the engine knows of an image; None when it has it not."""
        done = subprocess.run(
            [self.program, "image", "inspect", reference], capture_output=True, text=True, check=False
        )
        found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
        return found[0] if found else None

    def platform(self, arch: str) -> list[str]:
        """The option for another architecture than the engine's own."""
        return [] if arch == self.arch else ["--platform", PLATFORMS[arch]]

    def read_file(self, image: str, path: str) -> str:
        """A text file of an image, which need not run here."""
        container = self.run("create", image, "-").strip()
        try:
            with tempfile.TemporaryDirectory() as scratch:
                self.run("cp", f"{container}:{path}", f"{scratch}/file")
                return (Path(scratch) / "file").read_text(encoding="utf-8")
        finally:
            self.run("rm", "-f", container)

    def emulates(self, arch: str) -> bool:
        """Whether programs of an architecture run here."""
        machine = {"arm": "aarch64", "x86": "x86_64"}[arch]
        return arch == self.arch or Path(f"/proc/sys/fs/binfmt_misc/qemu-{machine}").exists()


def find_engine() -> Engine:
    """The engine that docker's own variables name; RUNNER_DOCKER names another client.

    HostError when there is no client, UnreachableError when the engine does not answer.
    """
    program = shutil.which(os.environ.get("RUNNER_DOCKER") or "docker")
    if program is None:
        raise HostError("there is no docker here", hint="apt-get install docker.io, or --dry-run")
    done = subprocess.run(
        [program, "version", "--format", "{{json .}}"], capture_output=True, text=True, check=False
    )
    try:
        versions = json.loads(done.stdout)
        server = versions["Server"]
        client = str(versions["Client"]["Version"])
        arch = "arm" if server["Arch"].startswith("arm") else "x86"
        version = str(server["Version"])
    except (ValueError, KeyError, TypeError):
        said = done.stderr.strip().splitlines()
        raise UnreachableError(
            f"the docker engine does not answer: {said[-1] if said else 'no reason given'}",
            hint="start it (systemctl start docker), or set DOCKER_HOST",
        ) from None
    buildx = subprocess.run([program, "buildx", "version"], capture_output=True, check=False).returncode == 0
    built_in = _major(client) < 23  # since then BuildKit needs the plugin
    return Engine(
        program, version, buildkit=buildx or (built_in and _major(version) >= 19), buildx=buildx, arch=arch
    )


def _major(version: str) -> int:
    m = re.match(r"\d+", version)
    return int(m[0]) if m else 0
