"""Writes down what CANN's set_env.sh files set, so that every process has it, whatever way it comes in.

`docker run` has the entry point `with-env`; `docker exec`, a Kubernetes `command:` and a bare program have
the programs in /opt/ascend-runner/bin, which come first in PATH; `ssh` has /etc/environment and
/etc/profile.d; a shell of any kind has BASH_ENV. All read the one file env.sh, which costs nothing to
source again.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path("/opt/ascend-runner")
SOURCES = ("/usr/local/Ascend/ascend-toolkit/set_env.sh", "/usr/local/Ascend/nnal/atb/set_env.sh")
LISTS = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "CMAKE_PREFIX_PATH")
NOT_OURS = ("_", "SHLVL", "PWD", "OLDPWD", "HOSTNAME", "HOME", "FTP_PROXY", "ftp_proxy")
SHIM = """#!/bin/bash
. {root}/env.sh
exec "{real}/${{0##*/}}" "$@"
"""


def main() -> int:
    """Write env.sh, the entry point, and a program for each of Python's."""
    root = ROOT
    found = [s for s in SOURCES if Path(s).exists()]
    changed = _changes(found)
    lines = [f"export {name}={value}" for name, value in sorted(changed.items())]
    head = "# What " + (" and ".join(found) or "no set_env.sh") + " set when the image was built."
    _write(root / "env.sh", "\n".join([head, 'if [ -z "${ASCEND_RUNNER_ENV:-}" ]; then',
                                       "export ASCEND_RUNNER_ENV=1", *lines, "fi", ""]), 0o644)  # fmt: skip
    _write(root / "with-env", f'#!/bin/bash\n. {root}/env.sh\nexec "$@"\n', 0o755)
    _programs(root / "bin", Path(sys.executable).parent)
    _for_logins(root)
    print(f"env.sh sets {', '.join(sorted(changed)) or 'nothing'}")
    return 0


def _changes(sources: list[str]) -> dict[str, str]:
    """Each variable that the files set, as the right side of an assignment in bash."""
    quiet = " && ".join(f"source {s} >/dev/null" for s in sources) or "true"
    done = subprocess.run(["bash", "-c", f"set +u; {quiet}; env -0"], capture_output=True, check=True)
    after = dict(item.split("=", 1) for item in os.fsdecode(done.stdout).split("\0") if "=" in item)
    changed = {n: v for n, v in after.items() if os.environ.get(n) != v and n not in NOT_OURS}
    changed |= {
        n: os.environ[n] for n in ("MEGATRON_LM_PATH", *LISTS) if n in os.environ and n not in changed
    }
    return {n: _added(n, v) if n in LISTS else shlex.quote(v) for n, v in changed.items()}


def _added(name: str, value: str) -> str:
    """A list of folders in front of what the process has already, each once."""
    folders = [f for f in dict.fromkeys(value.split(":")) if f]
    return f'{shlex.quote(":".join(folders))}"${{{name}:+:${name}}}"'


def _programs(target: Path, real: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    shim = target / ".with-env"
    _write(shim, SHIM.format(root=ROOT, real=real), 0o755)
    for program in sorted(real.iterdir()):
        if (
            program.is_file()
            and os.access(program, os.X_OK)
            and not program.name.startswith(("activate", "."))
        ):
            link = target / program.name
            link.unlink(missing_ok=True)
            link.symlink_to(shim.name)


def _for_logins(root: Path) -> None:
    """Interactive and remote shells: .bashrc stops early in the latter, so it comes first."""
    _write(Path("/etc/profile.d/ascend-runner.sh"), f"PATH={root}/bin:$PATH\n. {root}/env.sh\n", 0o644)
    environment = Path("/etc/environment")
    had = environment.read_text() if environment.exists() else ""
    kept = [line for line in had.splitlines() if not line.startswith(("PATH=", "BASH_ENV="))]
    path = f'PATH="{root}/bin:{os.environ.get("PATH", "/usr/bin:/bin")}"'
    _write(environment, "\n".join([*kept, path, f"BASH_ENV={root}/env.sh", ""]), 0o644)
    for home in (Path("/root"), Path("/etc/skel")):
        home.mkdir(exist_ok=True)
        rc = home / ".bashrc"
        had = rc.read_text() if rc.exists() else ""
        line = f"[ ! -e {root}/env.sh ] || . {root}/env.sh\n"
        if line not in had:
            _write(rc, line + had, 0o644)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


if __name__ == "__main__":
    raise SystemExit(main())
