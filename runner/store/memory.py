"""What a run holds in memory from submit to its end, never in the state folder: variables and secrets."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from runner.core.plan import Plan, PlannedStep
from runner.errors import HostError, RunnerError
from runner.files import read_json


def hold(home: Path, run: int, plan: Plan, environ: Mapping[str, str], inherited: Mapping[str, str]) -> None:
    """Hold what steps inherit of the submitter's environment and the secrets they name in it.

    HostError when a secret is missing.
    """
    wanted = {n: f"step '{s.name}'" for s in plan.steps for n, file in _wanted(s).items() if file is None}
    wanted |= dict.fromkeys(plan.notify.variables if plan.notify else (), "notify")
    for name, who in wanted.items():
        if name not in environ:
            message = f"{who} needs the secret {name}, which is not in the environment"
            raise HostError(message, hint=f"export {name}=... and submit again")
    secrets = {name: environ[name] for name in wanted}
    _write(_held(home, run), {"environ": dict(inherited), "secrets": secrets})


def held_environ(home: Path, run: int) -> dict[str, str] | None:
    """What the run's steps inherit; None when it did not outlive a restart of this host."""
    held = read_json(_held(home, run))
    return {str(k): str(v) for k, v in held["environ"].items()} if held else None


def held_secrets(home: Path, run: int) -> dict[str, str]:
    """The secrets that are held for a run; none when they did not outlive a restart of this host."""
    held = read_json(_held(home, run)) or {}
    return {str(k): str(v) for k, v in held.get("secrets", {}).items()}


def hand_over(home: Path, run: int, step: PlannedStep, attempt: Path) -> str | None:
    """A file with the step's secrets that `entry` reads and removes; None when it has none."""
    wanted = _wanted(step)
    if not wanted:
        return None
    held = held_secrets(home, run)
    values = {}
    for name, file in wanted.items():
        if file is not None:
            values[name] = _read(step.name, name, file)
        elif name in held:
            values[name] = held[name]
        else:
            raise RunnerError(f"step '{step.name}' needs the secret {name}, which did not outlive a restart")
    path = _memory() / f"{_mark(home, run)}-{hashlib.sha256(os.fsencode(attempt)).hexdigest()[:16]}.json"
    _write(path, values)
    return str(path)


def lost_secrets(home: Path, run: int, step: PlannedStep) -> list[str]:
    """The step's secrets that were held and are not any more, as after a restart of this host."""
    held = held_secrets(home, run)
    return [n for n, file in _wanted(step).items() if file is None and n not in held]


def held_runs(home: Path) -> list[int]:
    """The runs of this home of which something is held."""
    mine = _mark(home, "")
    numbers = (re.match(r"\d+", p.name[len(mine) :]) for p in _memory().glob(f"{mine}*"))
    return sorted({int(n[0]) for n in numbers if n})


def let_go(home: Path, run: int) -> None:
    """The run has ended: forget what it held, also what an `entry` that was killed has not read."""
    for path in _memory().glob(f"{_mark(home, run)}[.-]*"):
        path.unlink(missing_ok=True)


def _wanted(step: PlannedStep) -> dict[str, str | None]:
    return {name: file for secret in step.secrets for name, file in secret.items()}


def _read(step: str, name: str, file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8").strip()
    except OSError as e:
        raise RunnerError(f"step '{step}' reads the secret {name} from {file}: {e.strerror}") from e


def _held(home: Path, run: int) -> Path:
    return _memory() / f"{_mark(home, run)}.json"


def _mark(home: Path, run: int | str) -> str:
    return f"ascend-runner-{hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:16]}-{run}"


def _memory() -> Path:
    """A folder in memory; HostError when this host has none that we may write to."""
    for place in (Path("/dev/shm"), Path(os.environ.get("XDG_RUNTIME_DIR", "/run/user") or "/run/user")):
        if os.access(place, os.W_OK):
            return place
    raise HostError("a run needs a folder in memory, and /dev/shm cannot be written")


def _write(path: Path, value: Mapping[str, object]) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")  # an `entry` may read the old one at this moment
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
        json.dump(value, f)
    draft.replace(path)
