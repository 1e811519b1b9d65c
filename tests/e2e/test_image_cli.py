"""`build_image.py` as a process, without docker: what it takes, refuses and prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.data.stacks import CATALOGUE

PROJECT = CATALOGUE.parent
Image = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """Run the builder where docker does not answer, in a folder with an odd name."""
    work = tmp_path / "工作 folder"
    work.mkdir()

    def run(*args: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        own = {"RUNNER_SITE": str(work / "site.yaml"), "RUNNER_HOME": str(work / "home")}
        own |= {"DOCKER_HOST": "unix:///nonexistent"}
        environ = {k: v for k, v in os.environ.items() if k not in ("DOCKER_REGISTRY", "RUNNER_DOCKER")}
        done = subprocess.run(
            [sys.executable, PROJECT / "build_image.py", *args], capture_output=True, text=True, check=False,
            cwd=work, env={**environ, **own, **env},
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def dry(image: Image, *args: str, **env: str) -> dict[str, object]:
    told: dict[str, object] = json.loads(image(*args, "--json", **env).stdout)["builds"][0]
    return told


def test_the_example_of_the_guide_builds_the_generation_that_it_names(image: Image) -> None:
    """modelscope's own builder takes the A3 base for these very words."""
    words = "--image_type ascend --python_version 3.11.11 --soc_version ascend910b1 --arch arm --dry_run"
    told = dry(image, *words.split(), DOCKER_REGISTRY="ms-swift")
    assert told["generation"] == "A2"
    assert told["base"] == "quay.io/ascend/cann:9.0.0-910b-ubuntu22.04-py3.11"
    assert told["tags"] == [
        "ms-swift:v4.3.2-A2-py311-arm",
        "ms-swift:v4.3.2-cann9.0.0-torch_npu2.9.0.post2-910b-ubuntu22.04-py3.11",
    ]
    main = dry(image, *words.split(), "--swift_branch", "main", DOCKER_REGISTRY="r.example/x")
    assert main["tags"][0] == "r.example/x:main-A2-py311-arm"  # type: ignore[index]


def test_modelscopes_versions_choose_the_stack(image: Image) -> None:
    words = ["build", "--dry-run", "--soc_version", "ascend910_9391", "--torch_npu_version"]
    assert dry(image, *words, "2.10.0.post4")["stack"] == "swift-4.5-cann9.1"
    said = image(*words, "2.11.0", code=2).stderr
    assert "no stack for A3 has torch-npu 2.11.0 (but 2.9.0.post2)" in said


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("build --generation A4", "there is no generation 'A4' - did you mean"),
        ("build", "for which hardware?"),
        ("build --soc ascend910b9", "no generation has the SOC_VERSION 'ascend910b9' - did you mean"),
        ("build --soc Ascend310P3", "310P is made for inference"),
        ("build --generation A2 --soc ascend910_9391", "SOC_VERSION ascend910_9391 is A3"),
        ("build --generation A2 --base quay.io/ascend/cann:9.0.0-a3-ubuntu22.04-py3.11", "is for A3"),
        ("build --generation A2 --os centos7", "no base image with centos7"),
        ("build --generation A2 --without vlm", "did you mean 'vllm'"),
        ("build --generation A2 --stack swift-4.3", "there is no stack 'swift-4.3'"),
        ("build --generation A2 --mirror apt", "--mirror 'apt' cannot be read"),
        ("build --generation A2 --mirror pip=mirror.example", "http"),
        ("build --generation A2 --wheelhouse /nonexistent", "is no folder"),
        ("build --generation A2 --ca-bundle /nonexistent", "is no file"),
        ("build --generation A2 --mirror apt=http://u:p@m.example --dry-run", "has a password"),
        ("build --image_type gpu", "only images for Ascend NPUs"),
        ("pull x", "there is no command 'pull' - did you mean 'push'"),
        ("parse-tag latest", "latest"),
        ("show nothing", "there is no stack 'nothing'"),
        ("load /nonexistent", "docker engine does not answer"),
    ],
)
def test_what_cannot_be_is_said_at_once(image: Image, args: str, says: str) -> None:
    code = 5 if "load" in args else 2
    done = image(*args.split(), code=code)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_good_choice_fails_only_at_docker(image: Image) -> None:
    assert "docker engine does not answer" in image("build", "--generation", "A2", code=5).stderr


def test_help_needs_no_environment(image: Image) -> None:
    for args in (["--help"], ["build", "--help"], ["lock", "--help"]):
        assert "Usage: build_image.py" in image(*args, HOME="/nonexistent").stdout


def test_mirrors_come_from_the_site_and_the_command_line(image: Image, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(
        "mirrors:\n  registries: {quay.io: mirror.example/quay}\n  apt: http://m.example/ubuntu\n"
        "proxies: {https: 'http://user:pass-word@proxy.example:3128'}\n"
    )
    words = ["build", "--generation", "A2", "--dry-run", "--mirror", "dnf=http://d.example/openeuler/"]
    told = dry(image, *words, RUNNER_SITE=str(site))
    assert told["base"] == "mirror.example/quay/ascend/cann:9.0.0-910b-ubuntu22.04-py3.11"
    command = told["command"]
    assert isinstance(command, list)
    assert {"APT_MIRROR=http://m.example", "DNF_MIRROR=http://d.example/openeuler", "https_proxy=***"} <= set(
        command
    )
    assert "pass-word" not in str(told)


def test_the_dockerfile_alone_goes_to_stdout(image: Image) -> None:
    done = image("build", "--generation", "950", "--dry-run")
    assert done.stdout == (CATALOGUE / "rendered" / "swift-4.5-cann9.1-950.Dockerfile").read_text()
    assert "would build 950 (ascend950dt_9582)" in done.stderr


def test_official_images(image: Image) -> None:
    first = image("official", "--generation", "a3", "--driver", "25.0.1").stdout.splitlines()[0]
    assert first == "quay.io/ascend/ms-swift:v4.4.2-cann9.0.1-torch_npu2.9.0.post4-a3-ubuntu22.04-py3.11"
    assert "build one" in image("official", "--generation", "950", code=3).stderr


def test_stacks_are_listed_shown_and_compared(image: Image) -> None:
    assert "A2* A3*" in image("list").stdout
    shown = image("show", "swift-4.3-cann9.0").stdout
    assert "override: vllm-ascend declares torch-npu==2.9.0" in shown
    assert "without a hash: triton-ascend 3.2.1" in shown
    differ = json.loads(image("diff", "swift-4.3-cann9.0", "swift-4.5-cann9.1", "--json", code=1).stdout)
    assert differ["differ"]["vllm"] == ["0.18.0", "0.23.0"]
    assert image("diff", "cpu", "cpu", "--all").stdout == ""


def test_bake_writes_a_target_for_all(image: Image, tmp_path: Path) -> None:
    file = tmp_path / "bake 文件.json"
    image("bake", "--to", str(file), "--registry", "r.example/x")
    baked = json.loads(file.read_text())
    target = baked["target"]["swift-4_5-cann9_1-950-arm"]
    assert (PROJECT / target["dockerfile"]).exists()
    assert target["platforms"] == ["linux/arm64"]
    assert len({t for one in baked["target"].values() for t in one["tags"]}) == len(baked["target"])


def test_on_an_ascend_host_the_chip_is_asked_for(image: Image, tmp_path: Path) -> None:
    tool = tmp_path / "npu-smi"
    tool.write_text('#!/bin/sh\necho "NPU ID : 0"\necho "Chip Name : 910B4"\n')
    tool.chmod(0o755)
    told = dry(image, "build", "--dry-run", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (told["generation"], told["soc"]) == ("A2", "ascend910b4")
