"""A real docker engine of our own, a base image, a wheelhouse: made once, kept for the whole run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from imagebuild import PROJECT, Builder, build, lacking, need


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.docker)


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The address of an engine; RUNNER_TEST_ENGINE names a folder to keep it in."""
    need("dockerd", "debootstrap", "/usr/bin/docker")
    if os.geteuid() != 0:
        lacking("an engine of our own needs root")
    kept = os.environ.get("RUNNER_TEST_ENGINE")
    folder = Path(kept or tempfile.mkdtemp(prefix="engine-"))
    done = subprocess.run(
        [Path(__file__).with_name("engine.sh"), folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    yield done.stdout.strip()
    if not kept:
        pid = int((folder / "pid").read_text())
        os.kill(pid, signal.SIGTERM)
        subprocess.run(["tail", "--pid", str(pid), "-f", "/dev/null"], timeout=60, check=True)
        subprocess.run(f"umount -q {folder}/data/overlay2/*/merged; rm -rf {folder}", shell=True, check=False)


@pytest.fixture(scope="session")
def docker(engine: str) -> Callable[..., str]:
    """Run the docker client on the engine and give what it printed."""

    def run(*args: str, code: int = 0) -> str:
        done = subprocess.run(
            ["/usr/bin/docker", "-H", engine, *args], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")

    return run


@pytest.fixture(scope="session")
def build_image(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Run build_image.py on the engine."""
    home = tmp_path_factory.mktemp("构建 home")

    def run(
        *args: str | Path, code: int = 0, project: Path = PROJECT, **env: str
    ) -> subprocess.CompletedProcess[str]:
        given = {"DOCKER_HOST": engine, "RUNNER_DOCKER": "/usr/bin/docker", "RUNNER_HOME": str(home)}
        done = subprocess.run(
            [sys.executable, str(project / "build_image.py"), *map(str, args)],
            capture_output=True, text=True, check=False, env={**os.environ, **given, **env}, cwd=home,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def wheelhouse(build_image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the cpu stack needs, which every build takes its packages from."""
    folder = tmp_path_factory.mktemp("wheels") / "车轮 house"
    near = [word for place in os.environ.get("PIP_FIND_LINKS", "").split() for word in ("--near", place)]
    build_image("wheelhouse", "cpu", "--to", folder, *near)
    return folder


@pytest.fixture(scope="session")
def built(build_image: Builder, wheelhouse: Path) -> dict[str, Any]:
    """The record of the cpu image, built with BuildKit."""
    return build(build_image, wheelhouse, "--builder", "buildkit", "--tag", "cpu:buildkit")
