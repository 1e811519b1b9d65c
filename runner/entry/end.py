"""How a process ended, read from its status, its log and the kernel."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from pathlib import Path

SWIFT_SIGNALS = (4, 6, 7, 8, 9, 11, 15)  # `swift` does sys.exit(-n), which the kernel cuts to 256 - n
_TAIL = 262144
_RANK = re.compile(r"rank\s+: (\d+) \(local_rank: \d+\)\s+exitcode\s+: (-?\d+) \(pid: \d+\)")


def read_status(status: int, program: str) -> tuple[int, int | None]:
    """Give code and signal; the `swift` wrapper's 256 - n was its trainer's signal n."""
    number, code = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, os.WEXITSTATUS(status)
    if not number and Path(program).name in ("swift", "megatron") and 256 - code in SWIFT_SIGNALS:
        number = 256 - code
    return (128 + number, number) if number else (code, None)


def sign(number: int) -> str:
    """Name a signal."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def torchrun_codes(log: int, where: int) -> dict[str, int]:
    """Read each rank's code from torchrun's ChildFailedError block at the end of the log."""
    try:
        tail = os.pread(log, _TAIL, max(where, os.fstat(log).st_size - _TAIL))
    except OSError:  # the log is no file
        return {}
    return {rank: int(code) for rank, code in _RANK.findall(tail.decode("utf-8", "replace"))}


def oom_kills() -> int:
    """Read how often the kernel has killed for want of memory in our cgroup, version 2 or 1."""
    files: list[str] = []
    groups = ""
    with contextlib.suppress(OSError):  # a kernel without cgroups
        groups = Path("/proc/self/cgroup").read_text()
    for _, kinds, path in (line.split(":", 2) for line in groups.splitlines()):
        for root in (path, ""):
            files += [f"/sys/fs/cgroup{root}/memory.events"] if not kinds else []
            files += [f"/sys/fs/cgroup/memory{root}/memory.oom_control"] if kinds == "memory" else []
    for file in files:
        with contextlib.suppress(OSError):
            found = re.search(r"^oom_kill (\d+)", Path(file).read_text(), re.M)
            if found:
                return int(found[1])
    return 0
