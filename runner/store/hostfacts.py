"""What a manifest says of the machine: system, processor, memory, NPU devices and their driver."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
from functools import cache
from pathlib import Path
from typing import Any

_CPU_WORDS = ("model name", "CPU implementer", "CPU part", "CPU variant", "CPU revision", "cpu model")
_VERSIONS = {
    "driver": "/usr/local/Ascend/driver/version.info",
    "firmware": "/usr/local/Ascend/firmware/version.info",
    "install": "/etc/ascend_install.info",
    "toolkit": "/usr/local/Ascend/ascend-toolkit/latest/version.cfg",
}


@cache
def host_facts() -> dict[str, Any]:
    """The facts of this host, looked up once for a process; what it does not say is null."""
    return {
        "hostname": socket.gethostname(),
        "kernel": os.uname().release,
        "os": _os_release().get("PRETTY_NAME"),
        "arch": os.uname().machine,
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": sys.version.split()[0],
        "boot_id": (_text("/proc/sys/kernel/random/boot_id") or "").strip() or None,
        "devices": sorted(p.name for p in Path("/dev").glob("davinci*")),
        "ascend": {name: _versions(path) for name, path in _VERSIONS.items() if Path(path).is_file()},
    }


def _cpu() -> str | None:
    """The first processor's name; an Arm one has numbers instead."""
    head = _text("/proc/cpuinfo", 4096) or ""
    found = dict(re.findall(r"^(.+?)\s*: *(.*)$", head.partition("\n\n")[0], re.MULTILINE))
    named = {w: found[w] for w in _CPU_WORDS if w in found}
    return named.get("model name") or ", ".join(f"{k} {v}" for k, v in named.items()) or None


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _versions(path: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)\s*=\s*(.*)$", _text(path, 16 << 10) or "", re.MULTILINE)
    return {k: v.strip("[] \"'") for k, v in found if "version" in k.lower() or "chip" in k.lower()}


def _text(path: str, most: int = -1) -> str | None:
    try:
        with Path(path).open("rb") as f:
            return f.read(most).decode("utf-8", "replace")
    except OSError:
        return None
