"""Is a training checkpoint complete? A half-written one must never be resumed, merged or served."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

NAME = re.compile(r"^checkpoint-(\d+)$")  # never checkpoint-9-merged
_OPTIMIZER = re.compile(
    r"^(optimizer\.(pt|bin)|optimizer_\d+/.*|global_step\d+/.*optim.*|iter_\d+/.*|.*\.distcp)$"
)
_WEIGHTS = re.compile(
    r"^(adapter_model|model|pytorch_model)[^/]*\.(safetensors|bin)$|^(iter_|global_step|pytorch_model_fsdp_)\d+/"
)
INCOMPLETE_MARK = (
    "checkpoint-is-incomplete.txt"  # transformers' JITCheckpointCallback leaves it while it writes
)


@dataclass(frozen=True)
class CheckpointFacts:
    """What was found in one checkpoint folder; paths are relative to it."""

    name: str
    files: Mapping[str, int]  # path -> bytes
    global_step: int | None  # trainer_state.json; None: missing or unreadable
    torn: tuple[
        str, ...
    ] = ()  # safetensors that are shorter or longer than their header says, unreadable archives
    save_only_model: bool = False
    best: str | None = None  # trainer_state.json's best_model_checkpoint
    extra: Mapping[str, str] = field(default_factory=dict)


def incomplete_because(facts: CheckpointFacts, ranks: int = 1) -> str | None:
    """Why this checkpoint must not be used; None when it is complete for that many ranks."""
    match = NAME.match(facts.name)
    if not match:
        return "its name is not checkpoint-<step>"
    if INCOMPLETE_MARK in facts.files:
        return f"{INCOMPLETE_MARK} says that writing did not end"
    megatron = "latest_checkpointed_iteration.txt" in facts.files
    if not megatron:
        if facts.global_step is None:
            return "trainer_state.json is missing or unreadable"
        if facts.global_step != int(match[1]):
            return f"trainer_state.json is of step {facts.global_step}"
    if facts.torn:
        return f"{facts.torn[0]} is cut off"
    if not any(_WEIGHTS.match(f) for f in facts.files):
        return "it holds no weights"
    if megatron or facts.save_only_model:
        return None
    return _resumable(facts, ranks)


def _resumable(facts: CheckpointFacts, ranks: int) -> str | None:
    if not any(_OPTIMIZER.match(f) for f in facts.files):
        return "the optimizer's state is missing"
    if "scheduler.pt" not in facts.files and not any(f.startswith("global_step") for f in facts.files):
        return "scheduler.pt is missing"
    states = ["rng_state.pth"] if ranks == 1 else [f"rng_state_{r}.pth" for r in range(ranks)]
    for name in states:
        if name not in facts.files:
            return f"{name} is missing"
    return None
