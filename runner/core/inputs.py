"""What the commands of a plan read: local files and folders, and what a hub would be asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.core.plan import Command, Plan, PlannedStep

_HUB = {
    "model", "ref_model", "reward_model", "teacher_model", "adapters", "ref_adapters", "reward_adapters",
    "teacher_adapters", "dataset", "val_dataset", "chord_sft_dataset",
}  # fmt: skip
_LOCAL = {
    "cached_dataset", "cached_val_dataset", "custom_dataset_info", "external_plugins", "custom_register_path",
    "deepspeed", "fsdp", "fsdp_config", "mcore_model", "mcore_adapter", "mcore_ref_model",
    "mcore_ref_adapter", "resume_from_checkpoint", "local_repo_path",
}  # fmt: skip
_WRITTEN = {"output_dir", "logging_dir", "result_path", "eval_output_dir", "tensorboard_dir", "out"}
_SAMPLED = re.compile(r"(#\d+|<[^>]*>)+$")  # ms-swift: dataset#1000
_PATH = re.compile(r"(\.{1,2}|~[^/]*)?/")
_ID = re.compile(r"(?:(hf|ms)::)?([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)(?::[\w/,.-]+)?", re.IGNORECASE)
_HUBS = {"hf": "huggingface", "ms": "modelscope"}


@dataclass(frozen=True)
class Named:
    """One thing that a step's command names: `path` if it is a file or folder, `id` if it is on a hub."""

    step: str
    flag: str
    text: str  # as written
    path: str  # without what ms-swift reads after it, such as `#1000`
    is_path: bool = False  # it can be nothing else
    id: str | None = None
    hub: str | None = None
    revision: str | None = None


def named_inputs(plan: Plan) -> list[Named]:
    """Everything the steps' commands name that is not made by the run itself, in order."""
    return [n for step in plan.steps for command in step.commands for n in _of_command(step, command)]


def flags_of(argv: Sequence[str]) -> dict[str, list[str]]:
    """The flags of a command line with their values, names written with underscores."""
    flags: dict[str, list[str]] = {}
    values: list[str] = []
    for token in argv:
        if re.match(r"--[A-Za-z]", token):
            name, joined, value = token[2:].partition("=")
            values = flags.setdefault(name.replace("-", "_"), [])
            values += [value] if joined else []
        else:
            values.append(token)
    return flags


def first_of(flags: Mapping[str, list[str]], name: str) -> str | None:
    """The first value of a flag; None when it is not given."""
    return next(iter(flags.get(name, ())), None)


def _of_command(step: PlannedStep, command: Command) -> list[Named]:
    flags = flags_of(command.argv)
    if step.kind in ("command", "check"):
        return []  # words of its own: nobody knows which of them are read
    if command.argv[:2] == ("vllm", "serve"):
        flags["model"] = [command.argv[2]]
    found = []
    for flag, values in flags.items():
        for text in values:
            known = flag in _HUB or flag in _LOCAL
            path = _SAMPLED.sub("", text)
            is_path = bool(_PATH.match(path))
            if "${{" not in text and flag not in _WRITTEN and (known or is_path) and path:
                found.append(_named(step, flag, text, path, is_path, flags))
    return found


def _named(
    step: PlannedStep, flag: str, text: str, path: str, is_path: bool, flags: Mapping[str, list[str]]
) -> Named:
    match = _ID.fullmatch(path) if flag in _HUB and not is_path else None
    if match is None:
        return Named(step.name, flag, text, path, is_path)
    face = flags.get("use_hf") == ["true"] or step.env.get("USE_HF") in ("1", "true", "True")
    prefixed = _HUBS.get((match[1] or "").lower()) or first_of(flags, "hub")
    hub = prefixed or ("huggingface" if face else "modelscope")
    revision = first_of(flags, f"{flag}_revision") or first_of(flags, "revision")
    return Named(step.name, flag, text, path, False, match[2], hub, revision)
