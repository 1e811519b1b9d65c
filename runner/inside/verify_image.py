"""Checks an image against its lock, as far as can be checked without a driver, by the image's own Python.

A check that proves nothing is not here: `import swift` is lazy and always passes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path("/opt/ascend-runner")
CANN = Path("/usr/local/Ascend")
TOOLKIT = "/usr/local/Ascend/ascend-toolkit/set_env.sh"
_ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)(?:\s*;\s*([^\\#]+?))?\s*\\?$")
# without CANN, and then with it; each proves that the packages it needs fit together
ALWAYS = {
    "torch": "import torch; torch.ones(2).sum()",
    "vllm": "import vllm",
    "megatron-core": "import megatron.core",
    "deepspeed": "import deepspeed",
    "datasets": "import datasets",
    "evalscope": "import evalscope",
    "fla-core": "import fla",
}
WITHOUT_NPU = {"ms-swift": "from swift.pipelines import sft_main, infer_main, export_main, deploy_main"}
WITH_CANN = {
    "torch-npu": "import torch_npu; torch_npu.npu.device_count()",
    "vllm-ascend": "from vllm.platforms import current_platform as p; assert 'NPU' in type(p).__name__",
    "ms-swift": "from swift.pipelines import sft_main, infer_main, export_main, deploy_main",
    "trl": "from trl import GRPOTrainer",
    "mcore-bridge": "import mindspeed.megatron_adaptor, mcore_bridge",
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; `ok` is None when it cannot be known here."""

    name: str
    ok: bool | None
    detail: str = ""


def main() -> int:
    """Print what was checked; 1 when anything is not as it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="FILE", help="also write it down as JSON")
    written = parser.parse_args().write
    stack = json.loads((ROOT / "stack.json").read_text())
    checks = list(run_checks(stack))
    for check in checks:
        mark = {True: "ok", False: "WRONG", None: "unknown"}[check.ok]
        print(f"[verify] {mark:8}{check.name}{': ' + check.detail if check.detail else ''}", flush=True)
    if written:
        record = {
            "checks": [asdict(c) for c in checks],
            "installed": dict(sorted((str(d.name), d.version) for d in metadata.distributions())),
            "unlocked": _unlocked(),
            "missing": sorted(_missing()),
            "python": platform.python_version(),
            "machine": platform.machine(),
        }  # fmt: skip
        Path(written).write_text(json.dumps(record, indent=1) + "\n")
    return int(any(c.ok is False for c in checks))


def run_checks(stack: dict[str, object]) -> Iterator[Check]:
    """All checks, the cheap ones first."""
    installed = {_plain(str(d.name)): d.version for d in metadata.distributions()}
    yield _as_locked(installed)
    yield _pip_check(stack)
    yield _one_triton()
    yield from _builds(stack, installed)
    if stack.get("cann"):
        yield _environment()
    cann = _cann_libraries()
    for name, code in ALWAYS.items():
        if name in installed:
            yield _imports(code, cann=False)
    if "torch-npu" not in installed:
        yield from (_imports(code, cann=False) for name, code in WITHOUT_NPU.items() if name in installed)
    for name, code in WITH_CANN.items() if "torch-npu" in installed else ():
        if name in installed:
            yield _imports(code, cann=True) if cann else Check(code, None, "no CANN libraries here")


def _as_locked(installed: dict[str, str]) -> Check:
    wrong, count = [], 0
    other_swift = (ROOT / "swift_ref").exists()  # a branch instead of the locked release
    for name, version in _locked():
        count += 1
        have = installed.get(name)
        if name in _missing() or (name == "ms-swift" and other_swift):
            continue
        if have is None or (have != version and have.partition("+")[0] != version):
            wrong.append(f"{name} {have or 'absent'}, locked {version}")
    return Check(f"{count} packages are as locked", not wrong and count > 0, "; ".join(wrong[:20]))


def _locked() -> Iterator[tuple[str, str]]:
    for file in sorted((ROOT / "lock").glob("*.txt")):
        for line in file.read_text().splitlines():
            m = _ENTRY.match(line.split(" ")[0] if file.name.endswith(".unlocked.txt") else line)
            if m and _applies(m[3]):
                yield _plain(m[1]), m[2]


def _applies(marker: str | None) -> bool:
    if not marker:
        return True
    from pip._vendor.packaging.markers import Marker

    return bool(Marker(marker.strip()).evaluate())


def _pip_check(stack: dict[str, object]) -> Check:
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    allowed = stack.get("pip_check") or []
    assert isinstance(allowed, list)
    said = [line for line in done.stdout.splitlines() if line.strip() and "No broken" not in line]
    absent = _missing()
    new = [s for s in said if s not in allowed and not any(m in _plain(s) for m in absent)]
    return Check("pip check says nothing that is not allowed", not new, "; ".join(new[:20]))


def _one_triton() -> Check:
    owners = [d.name for d in metadata.distributions()
              if any(str(f).startswith("triton/__init__") for f in d.files or ())]  # fmt: skip
    return Check("one package at most has triton/", len(owners) <= 1, ", ".join(map(str, owners)))


def _builds(stack: dict[str, object], installed: dict[str, str]) -> Iterator[Check]:
    cuda = sorted(n for n in installed if n.startswith(("nvidia-", "cuda-")))
    yield Check("nothing of CUDA is installed", not cuda, ", ".join(cuda[:5]))
    if "torch" in installed and platform.machine() == "x86_64":
        yield Check("torch is the CPU build", "+cpu" in installed["torch"], installed["torch"])
    if "vllm" in installed:
        yield Check("vllm is built for no device", installed["vllm"].endswith("+empty"), installed["vllm"])
    if "vllm-ascend" in installed:
        have = _run("from vllm_ascend._build_info import __device_type__ as d; print(d)")[1].strip()
        wanted = str(stack.get("device_type"))
        yield Check(f"vllm-ascend is built for {wanted}", have.rpartition(".")[2] == wanted, have[-200:])


def _environment() -> Check:
    """A bare program has what set_env.sh sets."""
    if not Path(TOOLKIT).exists():
        return Check("CANN's environment", None, "no CANN here")
    bare = {"PATH": f"{ROOT}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    code = (
        "import os; print(os.environ.get('ASCEND_TOOLKIT_HOME') or os.environ.get('ASCEND_HOME_PATH') or '')"
    )
    done = subprocess.run(["python3", "-c", code], env=bare, capture_output=True, text=True, check=False)
    return Check("a bare program has CANN's environment", bool(done.stdout.strip()), done.stdout.strip())


def _imports(code: str, *, cann: bool) -> Check:
    status, text = _run(code, cann=cann)
    return Check(code, status == 0, "" if status == 0 else text.strip()[-500:])


def _run(code: str, *, cann: bool = False) -> tuple[int, str]:
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    if cann:  # the driver is the host's; its library has a stand-in for builds
        found = [*CANN.glob("*/*-linux/devlib"), *CANN.glob("*/devlib")]
        devlib = ":".join(map(str, found))
        env["LD_LIBRARY_PATH"] = f"{env.get('LD_LIBRARY_PATH', '')}:{devlib}"
    else:
        env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _cann_libraries() -> bool:
    return any(any(CANN.glob(f"{sub}/libhccl.so")) for sub in ("*/lib64", "*/latest/lib64", "*/*/lib64"))


def _unlocked() -> dict[str, str]:
    """The hash of each package that had none in the lock, and the commit of a branch."""
    found = {}
    for file in (ROOT / "reports").glob("*"):
        for line in file.read_text().splitlines():
            digest, name = line.split()
            found[name] = f"sha256:{digest}"
    return found


def _missing() -> set[str]:
    folder = ROOT / "missing"
    return {_plain(p.name) for p in folder.iterdir()} if folder.is_dir() else set()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    raise SystemExit(main())
