"""What an attempt is told, and the environment that its commands get."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

DEFAULTS: dict[str, Any] = {
    "env": {}, "path_prepend": [], "source": [], "source_optional": [], "secrets": None, "timeout_s": None,
    "grace_s": 60.0, "stop": "tree", "log": "log.txt", "ready": None, "linger_s": 2.0,
}  # fmt: skip
_SHELLS_OWN = ("_", "SHLVL", "PWD", "OLDPWD")
if TYPE_CHECKING:  # Python 3.8 cannot subscript these
    Run = Callable[[str, list[str], dict[str, Any], int], dict[str, Any]]


class EntryError(Exception):
    """The attempt could not be run as it was written; `code` is what a shell would have answered."""

    def __init__(self, message: str, code: int = 125) -> None:
        super().__init__(message)
        self.code = code


def read_spec(folder: Path) -> dict[str, Any]:
    """Read attempt.json; EntryError says what is wrong with it."""
    path = folder / "attempt.json"
    try:
        spec = {**DEFAULTS, "cwd": str(folder), **json.loads(path.read_text(encoding="utf-8"))}
        wrong = _wrong(spec)
    except KeyError as error:
        raise EntryError(f"{path}: {error} is missing") from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise EntryError(f"{path}: is not what attempt/1 asks for: {error}") from None
    if wrong:
        raise EntryError(f"{path}: is not what attempt/1 asks for: {wrong}")
    if not Path(spec["cwd"]).is_dir():
        raise EntryError(f"cwd {spec['cwd']}: no such folder")
    return spec


def _wrong(spec: dict[str, Any]) -> str | None:
    if spec["schema"] != "attempt/1" or spec["stop"] not in ("ranks", "tree"):
        return "schema or stop"
    if not spec["commands"] or not all(isinstance(c["argv"], list) and c["argv"] for c in spec["commands"]):
        return "nothing to run"
    limit = 0 if spec["timeout_s"] is None else spec["timeout_s"]
    if not all(_seconds(s) for s in (limit, spec["grace_s"], spec["linger_s"])):
        return "timeout_s, grace_s or linger_s"
    if spec["ready"] and not _awaitable(**spec["ready"]):
        return "ready"
    texts = [spec["id"], spec["cwd"], spec["log"]]
    texts += spec["path_prepend"] + spec["source"] + spec["source_optional"]
    envs = [spec["env"]]
    for command in spec["commands"]:
        texts += [command["name"], *command["argv"]]
        envs.append(command.setdefault("env", {}))
    texts += [v for env in envs for v in env.values() if v is not None]
    return next((repr(v) for v in texts if not isinstance(v, str) or "\0" in v), None)


def _seconds(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= 0


def _awaitable(port: Any, timeout_s: Any, path: Any = None, model: Any = None, headers: Any = None) -> bool:
    texts = [v for v in (path, model) if v is not None]
    texts += [t for pair in dict(headers or {}).items() for t in pair]
    return isinstance(port, int) and _seconds(timeout_s) and all(isinstance(t, str) for t in texts)


def environment(run: Run, spec: dict[str, Any]) -> dict[str, str]:
    """Inherited, then the attempt's own, then what the sourced files say, then PATH, then the secrets."""
    secret = take_secrets(spec["secrets"])
    env = {"PYTHONUNBUFFERED": "1", **os.environ, "ASCEND_RUNNER_ATTEMPT": spec["id"]}
    env.pop("LOCAL_RANK", None)  # a stale one would make every process look like a rank
    # NNAL's set_env.sh asks `python3` about its torch: it must be the one that the commands will use.
    env = first_in_path(changed(env, spec["env"]), spec["path_prepend"])
    for name in spec["source"]:
        env = source(run, str(Path(spec["cwd"], name)), env)
    for name in spec["source_optional"]:
        if Path(spec["cwd"], name).exists():
            env = source(run, str(Path(spec["cwd"], name)), env)
    # As if exported after sourcing, except where a file only extended the value (LD_LIBRARY_PATH).
    mine = spec["env"].items()
    env = changed(env, {k: v for k, v in mine if v is None or f":{v}:" not in f":{env.get(k, '')}:"})
    return {**first_in_path(env, spec["path_prepend"]), **secret}


def first_in_path(env: dict[str, str], folders: list[str]) -> dict[str, str]:
    """A copy in whose PATH these folders come first, each once."""
    others = [p for p in env.get("PATH", os.defpath).split(os.pathsep) if p not in folders]
    return {**env, "PATH": os.pathsep.join([*folders, *others])}


def changed(env: dict[str, str], changes: dict[str, Any]) -> dict[str, str]:
    """A copy with these changes; None takes a variable away."""
    return {k: v for k, v in {**env, **changes}.items() if v is not None}


def take_secrets(name: str | None) -> dict[str, str]:
    """Read the secrets and remove their file; no message ever shows a value."""
    if name is None:
        return {}
    try:
        text = Path(name).read_text(encoding="utf-8")
        Path(name).unlink()
        return {key: value + "" for key, value in json.loads(text).items()}
    except OSError as error:
        raise EntryError(f"secrets {name}: {error.strerror}") from None
    except (ValueError, TypeError, AttributeError):
        raise EntryError(f"secrets {name}: is not a JSON mapping of texts") from None


def source(run: Run, file: str, env: dict[str, str]) -> dict[str, str]:
    """The environment that is left after a shell sourced the file."""
    if not os.access(file, os.R_OK):
        raise EntryError(f"source {file}: no such file, or not readable")
    script = f". {shlex.quote(file)} >&2; env -0"
    import tempfile

    with tempfile.TemporaryFile() as out:
        try:
            done = run(f"source {file}", ["bash", "-c", script], env, out.fileno())
        except EntryError:  # no bash in this image
            done = run(f"source {file}", ["sh", "-c", script], env, out.fileno())
        out.seek(0)
        pairs = [p.split("=", 1) for p in os.fsdecode(out.read()).split("\0") if "=" in p]
    if done["code"] or not pairs:
        raise EntryError(f"source {file}: ended its shell with code {done['code']}; the log may say why")
    sourced = {k: v for k, v in pairs if k not in _SHELLS_OWN}
    return {**{k: v for k, v in env.items() if k in _SHELLS_OWN}, **sourced}
