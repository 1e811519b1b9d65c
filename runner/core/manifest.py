"""All that reproducing a run needs, as one value: what is known at submit, and at its end what came of it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.core.inputs import Named, first_of, flags_of, named_inputs
from runner.core.metrics import Row, final
from runner.core.notice import without_tokens
from runner.core.plan import Plan
from runner.core.secrecy import HIDDEN, is_secret, public
from runner.core.stack import Stack

SCHEMA = "manifest/1"
Entry = dict[str, Any]
# what changes results or speed: determinism switches, queues and caches of kernels, threads, search paths
_MATTERS = re.compile(
    r"^(PATH|LD_LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|PYTHONHASHSEED|LANG|LC_ALL|TZ|TASK_QUEUE_ENABLE|COMBINED_ENABLE|"
    r"CPU_AFFINITY_CONF|MULTI_STREAM_MEMORY_REUSE|CLOSE_MATMUL_K_SHIFT|NPROC_PER_NODE|USE_HF|"
    r"(HCCL|LCCL|ATB|ASCEND|ACL|ACLNN|CANN|INF_NAN|CUBLAS|CUDA|NCCL|GLOO|PYTORCH|TORCH|TORCHINDUCTOR|TRITON|VLLM|"
    r"TRANSFORMERS|HF|MODELSCOPE|OMP|MKL|OPENBLAS|NUMEXPR|FLAGS|MEGATRON|MINDSPEED)_\w+)$"
)


@dataclass(frozen=True)
class Asked:
    """What is known of a run when it is submitted; None: nobody has written it down."""

    name: str
    file: str
    spec: str
    plan: Plan | None
    stack: Stack | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    point: Mapping[str, Any] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)
    inherited: Mapping[str, str] | None = None
    snapshot: Mapping[str, Any] | None = None
    host: Mapping[str, Any] | None = None
    submitted: float | None = None


def begun(asked: Asked, inputs: Sequence[Entry]) -> dict[str, Any]:
    """The manifest at submit."""
    plan, stack = asked.plan, asked.stack
    known = {
        "schema": SCHEMA,
        "name": asked.name,
        "file": asked.file,
        "spec": {"sha256": digest(asked.spec), "text": asked.spec},
        "params": public(asked.params),
        "point": public(asked.point),
        "sets": [_set_text(s) for s in asked.said.get("sets", ())],
        "said": public({k: v for k, v in asked.said.items() if k != "sets"}),
        "stack": {"name": plan.stack if plan else None, "pins": pins(stack) if stack else None},
        "image": plan.image if plan else None,
        "generation": plan.generation if plan else None,
        "plan": {"sha256": digest(plan_text(plan)) if plan else None},
        "snapshot": dict(asked.snapshot) if asked.snapshot is not None else None,
        "inputs": list(inputs),
        "seeds": seeds(plan) if plan else {},
        "variables": {
            "inherited": _mattering(asked.inherited) if asked.inherited is not None else None,
            "steps": {s.name: public(step_variables(plan, s.name)) for s in plan.steps} if plan else {},
        },
        "secrets": sorted({n for s in plan.steps for secret in s.secrets for n in secret}) if plan else [],
        "host": dict(asked.host) if asked.host is not None else None,
        "submitted": asked.submitted,
    }
    hook = plan.notify.url if plan and plan.notify else None
    return dict(json.loads(without_tokens(json.dumps(known), hook))) if hook else known


def plan_text(plan: Plan) -> str:
    """The text of plan.json."""
    return plan.model_dump_json(indent=1) + "\n"


def digest(text: str) -> str:
    """The sha256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def pins(stack: Stack) -> dict[str, str | None]:
    """What the stack pins, by name; Python and CANN too."""
    packages = {name: pin.version for name, pin in sorted(stack.packages.items())}
    return {"python": stack.python, **({"cann": stack.cann} if stack.cann else {}), **packages}


def seeds(plan: Plan) -> dict[str, dict[str, int | str | None]]:
    """The seeds of each ms-swift step as they are given; null is ms-swift's own default."""
    found: dict[str, dict[str, int | str | None]] = {}
    for step in plan.steps:
        for command in step.commands:
            if command.argv[:1] in (("swift",), ("megatron",)):
                flags = flags_of(command.argv)
                found[step.name] = {n: _number(first_of(flags, n)) for n in ("seed", "data_seed")}
    return found


def step_variables(plan: Plan, name: str) -> dict[str, str]:
    """All variables that the plan gives a step."""
    step = plan.step(name)
    return {**step.env, **{k: v for command in step.commands for k, v in command.env.items()}}


def grouped_inputs(plan: Plan) -> list[tuple[Named, list[dict[str, str]]]]:
    """Each thing that steps read, once, with the flags that name it."""
    grouped: dict[tuple[Any, ...], tuple[Named, list[dict[str, str]]]] = {}
    for named in named_inputs(plan):
        key = (named.path, named.id, named.hub, named.revision)
        uses = grouped.setdefault(key, (named, []))[1]
        uses.append({"step": named.step, "flag": named.flag, "text": named.text})
    return list(grouped.values())


def sealed(manifest: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a run that has ended: what was known at submit, and after it how it ended."""
    return {**{k: v for k, v in manifest.items() if k not in end}, **end}


def final_metrics(rows: Sequence[Row]) -> dict[str, float | str]:
    """The last value of each metric; `nan` and `inf` are text, JSON has no number for them."""
    return {name: value if math.isfinite(value) else str(value) for name, value in final(rows).items()}


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """The text of manifest.json; what is no UTF-8 in a file's name becomes an escape."""
    text = json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
    return text.encode("utf-8", "backslashreplace").decode()


def changed_inputs(inputs: Sequence[Entry]) -> list[str]:
    """The files that were not the same at the end as at submit."""
    return [
        i["at"] if f["path"] == "." else f"{i['at']}/{f['path']}"
        for i in inputs
        for f in i.get("files", ())
        if f.get("changed")
    ]


def _mattering(environ: Mapping[str, str]) -> dict[str, Any]:
    return public({k: v for k, v in sorted(environ.items()) if _MATTERS.match(k)})


def _set_text(text: str) -> str:
    name, _, _ = text.partition("=")
    return f"{name}={HIDDEN}" if is_secret(name.strip()) else str(public({"": text})[""])


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else text
