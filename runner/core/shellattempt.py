"""An attempt as a shell script, for the stand-in of `entry` where there is no Python."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def shell_attempt(record: Mapping[str, Any]) -> str:
    """attempt.json as attempt.sh: settings, `environment`, and one function for each command."""
    timeout = record["timeout_s"]
    settings = {
        "ID": record["id"],
        "CWD": record["cwd"],
        "LOG": record["log"],
        "STOP": record["stop"],
        "GRACE": math.ceil(record["grace_s"]),
        "TIMEOUT": "" if timeout is None else math.ceil(timeout),
        "LINGER": math.ceil(record.get("linger_s", 2.0)),
        "COMMANDS": len(record["commands"]),
        "REFUSED": _refused(record),
    }
    lines = [f"{name}={shlex.quote(str(value))}" for name, value in settings.items()]
    lines += ["environment() {", *(f"  {line}" for line in _environment(record)), "}"]
    for i, command in enumerate(record["commands"], 1):
        argv = shlex.join(command["argv"])
        lines.append(f"NAME_{i}={shlex.quote(json.dumps(command['name'])[1:-1])}")
        lines.append(f"LINE_{i}={shlex.quote(command['name'] + ': ' + argv)}")
        lines += [f"command_{i}() {{", *(f"  {line}" for line in _changes(command["env"]))]
        lines += [f"  if command -v setsid >/dev/null; then exec setsid {argv}; fi", f"  exec {argv}", "}"]
    return "\n".join(lines) + "\n"


def _refused(record: Mapping[str, Any]) -> str:
    """What a shell cannot do for this attempt; empty when it can do all."""
    names = [n for env in (record["env"], *(c["env"] for c in record["commands"])) for n in env]
    if record["secrets"]:
        return "secrets need an image with Python"
    if record["ready"]:
        return "a service needs an image with Python: nobody could see when it is READY"
    bad = next((n for n in names if not _NAME.fullmatch(n)), None)
    return f"no shell variable can be called {json.dumps(bad)[1:-1]}" if bad else ""


def _environment(record: Mapping[str, Any]) -> list[str]:
    """The same order as in Python: the attempt's own, what the files say, and the own again."""
    path = "".join(folder + ":" for folder in record["path_prepend"])
    first = f'export PATH={shlex.quote(path)}"${{PATH-}}"' if path else ":"
    lines = [
        "export PYTHONUNBUFFERED=${PYTHONUNBUFFERED-1}",
        "unset LOCAL_RANK",
        *_changes(record["env"]),
        first,
    ]
    for file in record["source"]:
        said = shlex.quote(f"source {file}: no such file, or not readable")
        lines.append(f"[ -r {_dotted(file)} ] || {{ echo {said}; exit 125; }}")
        lines.append(f". {_dotted(file)}")
    for file in record["source_optional"]:
        lines.append(f"if [ -e {_dotted(file)} ]; then . {_dotted(file)}; fi")
    if record["source"] or record["source_optional"]:
        lines += [*_changes(record["env"], keep_extended=True), first]
    lines.append(f"export ASCEND_RUNNER_ATTEMPT={shlex.quote(record['id'])}")
    return lines


def _dotted(file: str) -> str:
    """A name that `.` does not look up in PATH."""
    return shlex.quote(file if "/" in file else f"./{file}")


def _changes(env: Mapping[str, str | None], keep_extended: bool = False) -> list[str]:
    lines = []
    for name, value in env.items():
        if not _NAME.fullmatch(name):
            continue  # refused
        word = shlex.quote(value or "")
        export = f"export {name}={word}"
        if keep_extended and value:
            export = f'case ":${{{name}-}}:" in *:{word}:*) ;; *) {export} ;; esac'
        lines.append(f"unset {name}" if value is None else export)
    return lines
