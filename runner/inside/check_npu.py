"""Are the NPUs usable in this environment? python check_npu.py --npus N --out FILE: the guide's own check."""
# Runs inside a stack's environment: standard library, torch and transformers; imports nothing of ours.

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "torch",
    "torch_npu",
    "transformers",
    "ms-swift",
    "vllm",
    "vllm-ascend",
    "deepspeed",
    "mcore-bridge",
)
SET_ENV = "source /usr/local/Ascend/ascend-toolkit/set_env.sh, or the image lacks CANN (FAQ Q5)"
MOUNTS = "are /dev/davinci*, /dev/davinci_manager, /dev/devmm_svm and the driver mounted? (FAQ Q10)"


def main(argv: list[str]) -> int:
    """Print what is found, line by line; end with 0 when every device computes, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--npus", type=int, required=True, help="how many devices must be usable; 0: the CPU")
    parser.add_argument("--out", type=Path, required=True, help="where the record goes")
    asked = parser.parse_args(argv)
    record: dict[str, Any] = {"schema": "check/1", "python": sys.version.split()[0], "packages": versions()}
    for name, version in record["packages"].items():
        print(f"{name:<14} {version or 'not installed'}")
    print(f"{'CANN':<14} {os.environ.get('ASCEND_HOME_PATH') or 'set_env.sh was not sourced'}", flush=True)
    problem = check_npus(asked.npus, record) if asked.npus else check_cpu(record)
    record.update(ok=problem is None, message=problem or "usable")
    asked.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"check: {record['message']}")
    return 0 if problem is None else 1


def versions() -> dict[str, str | None]:
    """Which of the stack's packages are installed, and in which version."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def check_cpu(record: dict[str, Any]) -> str | None:
    """Why torch cannot compute on the CPU; None when it can."""
    import torch

    record["sum"] = float(torch.ones(10).sum())
    return None if record["sum"] == 10.0 else "torch computes wrongly on the CPU"


def check_npus(wanted: int, record: dict[str, Any]) -> str | None:
    """Why the NPUs are not usable, with what to do; None when each of them computes."""
    try:
        import torch
        import torch_npu  # noqa: F401 - registers torch.npu
    except (ImportError, OSError) as error:
        return f"torch_npu cannot be imported ({error}); {SET_ENV}, or its version is not torch's (FAQ Q6)"
    from transformers.utils import is_torch_npu_available

    if not is_torch_npu_available():
        return f"transformers sees no NPU; {SET_ENV}"
    npu: Any = torch.npu
    count = npu.device_count()
    print(f"{'devices':<14} {count}", flush=True)
    record["devices"] = count
    if count < wanted:
        return f"{count} NPU(s) are visible, {wanted} are wanted; {MOUNTS}"
    for index in range(wanted):
        try:
            total = float(torch.ones(10, device=f"npu:{index}").sum())
        except RuntimeError as error:
            return f"npu:{index} does not compute: {error}"
        print(f"{'npu:' + str(index):<14} {npu.get_device_name(index)}: {'ok' if total == 10.0 else total}")
        if total != 10.0:
            return f"npu:{index} computes wrongly: the sum of ten ones is {total}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
