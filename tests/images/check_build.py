"""Build the NPU images on a stand-in for CANN, as far as that goes: `make check-build`.

    python tests/images/check_build.py [--stack NAME] [--generation NAME]... [--folder FOLDER]

Real packages at their locked versions go through every layer that needs no NPU compiler. vllm-ascend is
built without its kernels; what no index within reach has is left out and named. Prints a line of JSON for
each image and keeps the records.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import standin

from runner.data.stacks import load_stack

PROJECT = Path(__file__).parents[2]
DOCKER = "/usr/bin/docker"
BUILDER = (sys.executable, PROJECT / "build_image.py")


def main() -> int:
    """Build each generation; 1 when one fails or is stamped for another."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--stack", default="swift-4.5-cann9.1")
    parser.add_argument("--generation", action="append")
    parser.add_argument("--folder", type=Path, default=PROJECT / "build" / "check-build")
    asked = parser.parse_args()
    stack = load_stack(asked.stack)
    asked.folder.mkdir(parents=True, exist_ok=True)
    start = [Path(__file__).with_name("engine.sh"), asked.folder / "engine"]
    engine = subprocess.run(start, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    own = {"DOCKER_HOST": engine, "RUNNER_DOCKER": DOCKER, "RUNNER_HOME": str(asked.folder)}
    env = {**os.environ, **own, "DOCKER_BUILDKIT": "1"}
    stand_ins, base = prepare(asked.stack, asked.folder, env)
    wheelhouse = asked.folder / f"wheels-{asked.stack}"
    filling = [*BUILDER, "wheelhouse", asked.stack, "--arch", "x86", "--to", wheelhouse, "--near", stand_ins]
    subprocess.run(filling, env=env, check=False)  # what it lacks is named in the records
    results = [build(asked.stack, g, base, wheelhouse, env) for g in asked.generation or stack.generations]
    for result in results:
        print(json.dumps(result))
    return int(not all(r["ok"] for r in results))


def prepare(name: str, folder: Path, env: dict[str, str]) -> tuple[Path, str]:
    """The wheels that stand in, and the base image."""
    stack = load_stack(name)
    place = folder / f"python{stack.python}"
    place.mkdir(exist_ok=True)
    family = {n: str(stack.version(n)) for n in ("torch", "torchvision", "torchaudio")}
    x86 = {n: v for n, v in family.items() if (pin := stack.packages[n].x86) and pin.version.endswith("+cpu")}
    standin.as_cpu_build(x86, stack.python, place)
    cuda = standin.cuda_libraries(family["torch"], stack.python, folder / f"torch{family['torch']}")
    context = folder / "base"
    standin.write_base(context, stack.python, cuda)
    base = f"cann-standin:{stack.python}"
    subprocess.run([DOCKER, "build", "-q", "--network=host", "-t", base, str(context)], env=env, check=True)
    return place, base


def build(stack: str, generation: str, base: str, wheelhouse: Path, env: dict[str, str]) -> dict[str, object]:
    """Build one, and ask the image for which chip vllm-ascend was built."""
    began = time.monotonic()
    tag = f"check:{stack}-{generation.lower()}"
    how = ["--no-kernels", "--allow-unlocked", "--builder", "buildkit", "--json"]
    which = ["--stack", stack, "--generation", generation, "--arch", "x86", "--base", base, "--tag", tag]
    argv = [*BUILDER, "build", *which, "--wheelhouse", wheelhouse, *how]
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=False)
    seconds = round(time.monotonic() - began)
    if done.returncode:
        return {"generation": generation, "ok": False, "seconds": seconds}
    (record,) = json.loads(done.stdout)["builds"]
    code = "import vllm_ascend._build_info as b; print(b.__device_type__)"
    run = [DOCKER, "run", "--rm", "--network=none", "-e", "TORCH_DEVICE_BACKEND_AUTOLOAD=0", tag]
    stamp = subprocess.run(
        [*run, "python3", "-c", code], env=env, capture_output=True, text=True, check=False
    )
    checks = record["checks"]
    return {
        "generation": generation,
        "ok": all(c["ok"] is not False for c in checks),
        "seconds": seconds,
        "bytes": record["image"]["bytes"],
        "device_type": stamp.stdout.strip() or stamp.stderr[-300:],
        "checked": sum(c["ok"] is True for c in checks),
        "not_checked_here": [c["name"] for c in checks if c["ok"] is None],
        "missing": record["missing"],
    }


if __name__ == "__main__":
    sys.exit(main())
