"""The cpu image, really built by both builders of a real engine, and used."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from imagebuild import BASE, PROJECT, Builder, build, need

Docker = Callable[..., str]
LABEL = "org.ascend-runner."


def test_the_record_says_what_went_in_and_came_out(built: dict[str, Any], docker: Docker) -> None:
    (about,) = json.loads(docker("image", "inspect", "cpu:buildkit"))
    assert built["image"] == {"id": about["Id"], "bytes": about["Size"], "tags": ["cpu:buildkit"]}
    assert built["base"]["digest"] == json.loads(docker("image", "inspect", BASE))[0]["Id"]
    assert (built["state"], built["missing"]) == ("BUILT", [])
    assert [c for c in built["checks"] if c["ok"] is not True] == []
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", built["unlocked"][next(iter(built["unlocked"]))])
    assert sum(s["seconds"] or 0 for s in built["steps"]) <= 1.5 * built["seconds"]
    labels = about["Config"]["Labels"]
    assert labels[LABEL + "stack"] == "cpu"
    assert labels[LABEL + "lock.cpu"] == built["locks"]["cpu.txt"]
    assert labels[LABEL + "builder.commit"] == built["builder_commit"]
    assert labels["org.opencontainers.image.base.digest"] == built["base"]["digest"]
    inside = json.loads(
        docker("run", "--rm", "--network=none", "cpu:buildkit", "cat", "/opt/ascend-runner/stack.json")
    )
    assert inside["locks"] == built["locks"]


def test_nothing_changed_takes_no_time(build_image: Builder, built: dict[str, Any], wheelhouse: Path) -> None:
    began = time.monotonic()
    again = build(build_image, wheelhouse, "--builder", "buildkit", "--tag", "cpu:again")
    assert again["image"]["id"] == built["image"]["id"]
    assert all(
        s.get("cached") for s in again["steps"] if s["what"].startswith("[build") and "RUN" in s["what"]
    )
    assert time.monotonic() - began < again["seconds"] + 3


def test_another_ms_swift_rebuilds_only_the_last_layers(
    build_image: Builder, built: dict[str, Any], wheelhouse: Path, tmp_path: Path
) -> None:
    project = changed_project(tmp_path / "project", wheelhouse)
    newer = build(build_image, wheelhouse, "--builder", "buildkit", "--tag", "cpu:newer", project=project)
    assert newer["seconds"] <= 0.4 * built["seconds"]
    cached = [s["what"] for s in newer["steps"] if s.get("cached")]
    assert any("install packages" in what for what in cached)


def changed_project(project: Path, wheelhouse: Path) -> Path:
    """This checkout with the next ms-swift in it: the same code under another version."""
    for name in ("runner", "Dockerfiles", "build_image.py", "pyproject.toml"):
        source = PROJECT / name
        shutil.copytree(source, project / name) if source.is_dir() else shutil.copy(source, project / name)
    (old,) = wheelhouse.glob("ms_swift-*.whl")
    version = old.name.split("-")[1]
    newer = f"{version}.post1"
    new = wheelhouse / old.name.replace(version, newer)
    with zipfile.ZipFile(old) as was, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as now:
        for item in was.infolist():
            name = item.filename.replace(f"-{version}.dist-info", f"-{newer}.dist-info")
            body = was.read(item)
            if name.endswith("METADATA"):
                body = body.replace(
                    f"\nVersion: {version}\n".encode(), f"\nVersion: {version}.post1\n".encode()
                )
            now.writestr(name, b"" if name.endswith("/RECORD") else body)
    digest = subprocess.run(["sha256sum", new], capture_output=True, text=True, check=True).stdout.split()[0]
    lock = project / "Dockerfiles" / "locks" / "cpu.txt"
    entry = rf"ms-swift=={re.escape(version)}( \\\n    --hash=sha256:[0-9a-f]+)+"
    text = re.sub(entry, rf"ms-swift=={newer} \\\\\n    --hash=sha256:{digest}", lock.read_text())
    lock.write_text(text)
    stack = project / "Dockerfiles" / "stacks" / "cpu.yaml"
    pin = f"ms-swift: {{version: {version}"
    stack.write_text(stack.read_text().replace(pin, f"{pin}.post1"))
    return project


def test_the_classic_builder_makes_the_same(
    build_image: Builder, built: dict[str, Any], wheelhouse: Path, docker: Docker
) -> None:
    classic = build(build_image, wheelhouse, "--builder", "classic", "--tag", "cpu:classic")
    assert classic["builder"] == "classic"
    assert (classic["missing"], classic["unlocked"]) == ([], built["unlocked"])
    freeze = ("run", "--rm", "--network=none")
    pip = ("python3", "-m", "pip", "freeze")
    assert docker(*freeze, "cpu:classic", *pip) == docker(*freeze, "cpu:buildkit", *pip)
    again = build(build_image, wheelhouse, "--builder", "classic", "--tag", "cpu:again")
    assert again["image"]["id"] == classic["image"]["id"]


def test_ms_swift_trains_in_it(built: dict[str, Any], docker: Docker, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "jobs" / "tiny", tmp_path / "tiny")
    script = (
        "python3 tiny/make_tiny.py --out model && "
        "swift sft --model model --model_type qwen3 --template qwen3 --dataset tiny/train.jsonl "
        "--split_dataset_ratio 0 --tuner_type lora --torch_dtype float32 --max_steps 3 --logging_steps 1 "
        "--save_steps 3 --max_length 256 --check_model false --report_to none --use_cpu true "
        "--output_dir out --add_version false"
    )
    mount = ("-v", f"{tmp_path}:/work", "-w", "/work", "-e", "HF_HUB_OFFLINE=1")
    docker("run", "--rm", "--network=none", *mount, "cpu:buildkit", "bash", "-c", script)
    rows = [json.loads(line) for line in (tmp_path / "out" / "logging.jsonl").read_text().splitlines()]
    assert [r["global_step/max_steps"] for r in rows if "loss" in r] == ["1/3", "2/3", "3/3"]
    assert (tmp_path / "out" / "checkpoint-3" / "adapter_model.safetensors").exists()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """Debian's registry, on this machine only."""
    need("docker-registry")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{s.getsockname()[1]}"
    config = tmp_path / "registry.yml"
    config.write_text(
        f"version: 0.1\nhttp: {{addr: '{at}'}}\n"
        f"storage: {{filesystem: {{rootdirectory: {tmp_path}/registry}}}}\n"
    )
    with subprocess.Popen(
        ["docker-registry", "serve", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        host, port = at.split(":")
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with socket.socket() as s:
                if s.connect_ex((host, int(port))) == 0:
                    break
            time.sleep(0.1)
        yield at
        process.terminate()


def test_pushed_pulled_saved_and_loaded_it_is_the_same(
    build_image: Builder, built: dict[str, Any], docker: Docker, registry: str, tmp_path: Path
) -> None:
    name = f"{registry}/ms-swift:cpu"
    docker("tag", "cpu:buildkit", name)
    pushed = build_image("push", name).stdout.split()
    assert pushed[0] == name
    docker("rmi", name)
    by_digest = f"{registry}/ms-swift@{pushed[1]}"
    docker("pull", "-q", by_digest)
    assert json.loads(docker("image", "inspect", by_digest))[0]["Id"] == built["image"]["id"]
    docker("rmi", by_digest)

    docker("tag", "cpu:buildkit", "给 save:me".replace("给 ", "for-"))
    bundle = tmp_path / "离线 bundle"
    build_image("save", "for-save:me", "--to", bundle)
    docker("rmi", "for-save:me")
    (archive,) = bundle.glob("*.tar")
    with archive.open("r+b") as f:
        f.seek(1000)
        byte = f.read(1)
        f.seek(1000)
        f.write(bytes([byte[0] ^ 1]))
    assert "checksum differs" in build_image("load", bundle, code=3).stderr
    with archive.open("r+b") as f:
        f.seek(1000)
        f.write(byte)
    assert build_image("load", bundle).stdout == "for-save:me\n"
    assert docker("run", "--rm", "--network=none", "for-save:me", "python3", "-c", "print(6 * 7)") == "42\n"


def test_a_failed_step_is_named_with_its_lines_and_cause(
    build_image: Builder, tmp_path: Path, engine: str
) -> None:
    (tmp_path / "empty").mkdir()
    said = build_image(
        "build",
        "--generation",
        "cpu",
        "--base",
        BASE,
        "--wheelhouse",
        tmp_path / "empty",
        "--allow-unlocked",
        code=1,
    ).stderr
    assert "the build failed at [build 6/16] RUN /opt/ascend-runner/install build" in said
    assert "  | ERROR: No matching distribution found for" in said
    assert "the index has no such version" in said
    (record,) = Path(re.findall(r"the whole log: (.*)/build.log", said)[0]).glob("build.json")
    assert json.loads(record.read_text())["state"] == "FAILED"


def test_what_is_not_locked_must_be_there_before_the_build(
    build_image: Builder, tmp_path: Path, engine: str
) -> None:
    began = time.monotonic()
    said = build_image(
        "build", "--generation", "cpu", "--base", BASE, "--wheelhouse", tmp_path, code=2
    ).stderr
    assert "torch 2.13.0+cpu is not locked and cannot be had now: the wheelhouse has it not" in said
    assert time.monotonic() - began < 20


def test_credentials_end_nowhere(
    build_image: Builder, wheelhouse: Path, docker: Docker, tmp_path: Path
) -> None:
    """Planted in every address that a site can have; then looked for in layers, history, log and record."""
    secret = "s3cr3t-t0ken-9f2a"
    site = tmp_path / "site.yaml"
    bundle = tmp_path / "ca.pem"
    bundle.write_text(f"-----BEGIN CERTIFICATE-----\n{secret}\n-----END CERTIFICATE-----\n")
    site.write_text(
        f"mirrors:\n  pip_index_url: https://user:{secret}@127.0.0.1:9/simple\n"
        f"  pip_extra_index_urls: [https://user:{secret}@127.0.0.1:9/extra]\n"
        f"  git: {{github.com: 'https://user:{secret}@127.0.0.1:9/git'}}\n"
        f"  indexes: {{pytorch: 'https://user:{secret}@127.0.0.1:9/torch'}}\n"
        f"ca_bundle: {bundle}\n"
        f"proxies: {{http: 'http://user:{secret}@127.0.0.1:9', no_proxy: ['*']}}\n"
    )
    home = tmp_path / "home"
    env = {"RUNNER_SITE": str(site), "RUNNER_HOME": str(home)}
    for builder in ("buildkit", "classic"):
        done = build_image(
            "build", "--generation", "cpu", "--base", BASE, "--tag", f"leak:{builder}", "--builder", builder,
            "--allow-unlocked", "--verbose", "--no-cache", code=1, **env,
        )  # fmt: skip
        assert secret not in done.stdout + done.stderr
        assert "WARNING: Retrying" in done.stderr or "No matching distribution" in done.stderr
    dry = build_image("build", "--generation", "cpu", "--dry-run", "--json", **env)
    assert secret not in dry.stdout + dry.stderr
    assert not [p for p in home.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]
    layers = docker("images", "-aq").split()
    assert layers
    assert secret not in docker("image", "inspect", *set(layers))
    for layer in set(layers):
        assert secret not in docker("history", "--no-trunc", layer)
