"""What docker prints, of both builders, as steps; and why a build failed."""

from __future__ import annotations

import re

import pytest

from runner.core.buildfail import explain
from runner.core.buildlog import BuildLog
from runner.core.imagename import full_tag, short_tag, swift_name
from runner.data.support import load_build_rules

CLASSIC = """\
Sending build context to Docker daemon  53.76kB
Step 1/3 : FROM base
 ---> 4c8e
Step 2/3 : COPY a /a
 ---> Using cache
Step 3/3 : RUN false
 ---> Running in 1234
no space left on device
The command '/bin/sh -c false' returned a non-zero code: 1
"""
BUILDKIT = """\
#1 [internal] load build definition from Dockerfile
#1 DONE 0.0s
#5 [lock 1/2] FROM docker.io/library/base
#5 CACHED
#6 [build 2/2] RUN pip install
#6 0.431 Collecting x
#6 1.2 ERROR: No matching distribution found for x==1
#6 ERROR: executor failed running [/bin/sh -c pip install]: exit code: 1
------
 > [build 2/2] RUN pip install:
"""


def read(text: str, *, failed: bool) -> BuildLog:
    log = BuildLog()
    for second, line in enumerate(text.splitlines()):
        log.line(line, float(second))
    log.end(100.0, failed=failed)
    return log


def test_classic() -> None:
    log = read(CLASSIC, failed=True)
    assert [(s.what, s.cached, s.failed) for s in log.steps.values()] == [
        ("[1/3] FROM base", False, False), ("[2/3] COPY a /a", True, False), ("[3/3] RUN false", False, True),
    ]  # fmt: skip
    assert "no space left on device" in log.tail()


def test_buildkit() -> None:
    log = read(BUILDKIT, failed=True)
    assert [(s.what, s.cached, s.failed) for s in log.steps.values()] == [
        ("[lock 1/2] FROM docker.io/library/base", True, False), ("[build 2/2] RUN pip install", False, True),
    ]  # fmt: skip
    assert list(log.tail())[:2] == ["Collecting x", "ERROR: No matching distribution found for x==1"]


def test_a_build_that_ends_well_has_no_failed_step() -> None:
    assert read(CLASSIC.rsplit("\n", 3)[0], failed=False).failed is None
    assert read("", failed=True).failed is None


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ERROR: No matching distribution found for torch-npu==2.9.0.post2", "no_torch_npu"),
        ("ERROR: No matching distribution found for triton-ascend==3.2.1", "no_triton_ascend"),
        ("ERROR: No matching distribution found for peft==1", "no_distribution"),
        ("exec /bin/bash: exec format error", "wrong_arch"),
        ("Unsupported TARGETPLATFORM:", "targetplatform"),
        ("ValueError: Could not determine chip type automatically via 'npu-smi'", "no_chip"),
        (
            "x.cpp:1: fatal error: torch_npu/csrc/core/npu/NPUStream.h: No such file or directory",
            "npu_stream",
        ),
        ("packaging.version.InvalidVersion: Invalid version: 'dev'", "vllm_version"),
        ("torch==2.10.0 (required by torch-npu==2.10.0) is incompatible with vllm>=0.23.0", "vllm_cuda"),
        ("OSError: [Errno 28] No space left on device", "no_space"),
        ("install: triton-ascend is not locked and cannot be had now; ALLOW", "unlocked_missing"),
        ("[verify] WRONG   266 packages are as locked: x absent", "verify"),
        ("Successfully installed peft-0.20.0", None),
    ],
)
def test_known_failures_are_explained(line: str, code: str | None) -> None:
    rule = explain(["Collecting x", line], load_build_rules())
    assert (rule.code if rule else None) == code
    assert rule is None or (rule.cause and rule.fix)


def test_every_rule_is_a_pattern_of_its_own() -> None:
    rules = load_build_rules()
    assert len({r.code for r in rules}) == len(rules)
    assert all(re.compile(r.pattern) for r in rules)


def test_tags() -> None:
    assert short_tag("main", "A2", "3.11", "arm") == "main-A2-py311-arm"
    versions = {"cann": "9.1.0", "torch_npu": "2.10.0.post4"}
    assert full_tag("v4.5.2", "910b", "ubuntu22.04", "3.12", versions) == (
        "v4.5.2-cann9.1.0-torch_npu2.10.0.post4-910b-ubuntu22.04-py3.12"
    )
    assert full_tag("v1", None, "debian12", "3.11", {}) == "v1-cpu-debian12-py3.11"
    assert swift_name("4.3.2", None) == "v4.3.2"
    assert short_tag(swift_name("4.3.2", "feature/新 x"), "A2", "3.11", "x86") == "feature---x-A2-py311-x86"
