"""The local backend: `entry` and a process tree, in a stack's virtual environment."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import runner
from runner.backends.venv import find_stack
from runner.core.bind import Environment
from runner.core.plan import Plan
from runner.errors import HostError
from runner.files import read_json

_ENTRY = Path(runner.__file__).parent / "entry"
_CANN = ("/usr/local/Ascend/ascend-toolkit/set_env.sh", "/usr/local/Ascend/nnal/atb/set_env.sh")
_FIRST_PORT, _PORTS = 18_000, 12_000  # below the kernel's own range: no client socket takes one meanwhile
_NEEDS_NO_STACK = {"command", "probe"}
_INHERITED = re.compile(
    r"^(HOME|USER|LOGNAME|SHELL|PATH|LANG|LC_.*|TERM|TZ|TMPDIR|LD_LIBRARY_PATH|XDG_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|"
    r"CURL_CA_BUNDLE|(?i:https?_proxy|no_proxy|all_proxy)|MODELSCOPE_CACHE|HF_HOME|HF_ENDPOINT|HF_HUB_OFFLINE|"
    r"OMP_.*|OPENBLAS_.*|MKL_.*)$"
)


class LocalBackend:
    """Attempts as processes of this machine; of NPUs only those under /dev."""

    def __init__(self, home: Path, site_env: Mapping[str, str]) -> None:
        self._home = home
        self._site_env = dict(site_env)
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def environment(self, plan: Plan) -> Environment:
        """The stack's programs first in PATH, and CANN's variables where CANN is installed."""
        stack = find_stack(self._home, plan.stack) if plan.stack else None
        if stack is None:
            needing = [s.name for s in plan.steps if s.kind not in _NEEDS_NO_STACK]
            if needing:
                raise HostError(
                    f"stack '{plan.stack}' is not on this host, and step '{needing[0]}' needs it",
                    hint=f"{_how(plan)}; `--stack cpu` runs the job on the CPU",
                )
            return Environment(path_prepend=(str(Path(sys.executable).parent),))
        several = next((s.name for s in plan.steps if s.nodes > 1), None)
        if several:
            raise HostError(f"step '{several}' asks for several nodes, and this host is one")
        asked = max(s.npus for s in plan.steps)
        if asked > len(self.devices()):
            raise HostError(
                f"the job asks for {asked} NPU device(s) at once and this host has {len(self.devices())}",
                hint="`--stack cpu` runs the same job on the CPU",
            )
        env = {"VIRTUAL_ENV": str(stack), "PYTHONNOUSERSITE": "1"}
        return Environment(env=env, path_prepend=(str(stack / "bin"),), source=_CANN if asked else ())

    def devices(self) -> list[int]:
        """The numbers of /dev/davinci<N>."""
        found = (re.fullmatch(r"davinci(\d+)", p.name) for p in Path("/dev").glob("davinci*"))
        return sorted(int(m[1]) for m in found if m)

    def capacity(self) -> tuple[float, int]:
        """The CPUs that we may run on, and the machine's memory."""
        return len(os.sched_getaffinity(0)), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def free_port(self, taken: set[int], wanted: int | None) -> int | None:
        """The wanted port when it is free, else the first free one of ours."""
        if wanted is not None:
            return wanted if wanted not in taken and _bindable(wanted) else None
        start = os.getpid() % _PORTS
        ports = (_FIRST_PORT + (start + i) % _PORTS for i in range(_PORTS))
        return next((p for p in ports if p not in taken and _bindable(p)), None)

    def inherited(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Who and where the submitter is, how it reaches the network, and what the site says."""
        return {**{k: v for k, v in environ.items() if _INHERITED.match(k)}, **self._site_env}

    def launch(self, attempt: Path, environ: Mapping[str, str]) -> int:
        """Start `entry`, in a session of its own."""
        with (attempt / "entry.err").open("ab") as err:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_ENTRY), str(attempt)],
                env=dict(environ), cwd="/", start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=err, stderr=err,
            )  # fmt: skip
        self._children[child.pid] = child
        return child.pid

    def alive(self, attempt: Path) -> bool:
        """By pid and start time, so that a reused pid is nobody's."""
        return _entry_pid(attempt, self._children) is not None

    def watch(self, attempt: Path) -> int | None:
        """A pidfd of `entry`."""
        pid = _entry_pid(attempt, self._children)
        if pid is None:
            return None
        try:
            return os.pidfd_open(pid)
        except ProcessLookupError:
            return None

    def stop(self, attempt: Path) -> None:
        """TERM to `entry`."""
        pid = _entry_pid(attempt, self._children)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it has ended at this moment
                os.kill(pid, signal.SIGTERM)

    def inside(
        self, attempt: Path, argv: Sequence[str], environ: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str], str]:
        """As `entry` does it: the attempt's variables and programs, after what CANN's scripts set."""
        record = read_json(attempt / "attempt.json")
        if record is None or not Path(record["cwd"]).is_dir():
            raise HostError(
                f"nothing can run in {attempt}: the attempt was never started, or its folder is gone"
            )
        changes = {**record["env"], **record["commands"][0]["env"]}
        env = {**environ, **{k: v for k, v in changes.items() if v is not None}}
        env = {k: v for k, v in env.items() if changes.get(k, "") is not None}
        env["PATH"] = ":".join([*record["path_prepend"], env.get("PATH", os.defpath)])
        scripts = [*record["source"], *(s for s in record["source_optional"] if Path(s).exists())]
        sourced = "".join(f". {shlex.quote(s)}; " for s in scripts)
        whole = ["bash", "-c", f'{sourced}exec "$@"', "bash", *argv] if scripts else list(argv)
        return whole, env, str(record["cwd"])

    def end_leftovers(self, attempt: Path, key: str) -> list[int]:
        """KILL every process with this attempt in its environment, until there is none."""
        ended: set[int] = set()
        empty = 0
        for _ in range(50):
            left = _of_attempt(key)
            empty = 0 if left else empty + 1
            if empty == 2:  # in the midst of an exec a process shows no environment
                break
            for pid in left:
                ended.add(pid)
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)
        return sorted(ended)


def _how(plan: Plan) -> str:
    """The command that brings the stack here: those with CANN cannot be installed as packages alone."""
    if plan.generation == "cpu":
        return f"`runner stack install {plan.stack}` installs it"
    return f"`runner stack adopt {plan.stack} FOLDER` names the Python environment that has it"


def _entry_pid(attempt: Path, children: Mapping[int, subprocess.Popen[bytes]]) -> int | None:
    started = read_json(attempt / "started.json")
    if started is None:
        launched = read_json(attempt / "launched.json")
        pid = int(launched["pid"]) if launched else 0
        child = children.get(pid)
        if child is not None:
            return pid if child.poll() is None else None
        return pid if pid and _runs_entry(pid, attempt) else None
    pid = int(started["pid"])
    if pid in children and children[pid].poll() is not None:
        return None
    same_boot = started.get("boot_id") in (None, _boot_id())
    return pid if same_boot and start_ticks(pid) == started["start_ticks"] else None


def _runs_entry(pid: int, attempt: Path) -> bool:
    try:
        return os.fsencode(attempt) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """When a living process started, in clock ticks since boot; None for a zombie or none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _of_attempt(key: str) -> list[int]:
    mark = f"ASCEND_RUNNER_ATTEMPT={key}".encode()
    found = []
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit() or int(proc.name) == os.getpid():
            continue
        try:
            if (
                mark in (proc / "environ").read_bytes().split(b"\0")
                and start_ticks(int(proc.name)) is not None
            ):
                found.append(int(proc.name))
        except OSError:
            continue
    return found


def _bindable(port: int) -> bool:
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family) as s:
                s.bind(
                    (host, port)
                )  # without SO_REUSEADDR, as ms-swift looks: a port in TIME_WAIT is not free
        except OSError as e:
            if e.errno not in (97, 99):  # no such address family here
                return False
    return True
