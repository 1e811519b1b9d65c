"""Is a training checkpoint complete? A half-written one must never be resumed, merged or served."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NAME = re.compile(r"^checkpoint-(\d+)$")  # never checkpoint-9-merged
# transformers' trainer_jit_checkpoint.py: there while a checkpoint is written on SIGTERM
INCOMPLETE_MARK = "checkpoint-is-incomplete.txt"
_SHARD = re.compile(r"^(.*-)(\d{5})(-of-)(\d{5})(\.(?:safetensors|bin))$")


@dataclass(frozen=True)
class Layout:
    """How one framework writes a checkpoint: patterns of file names, `{n}` being the step."""

    name: str
    mark: str  # a file that only this framework writes
    weights: str
    state: Mapping[str, str]  # what going on needs -> its pattern
    each_rank: str | None = None  # a file that, when any rank writes it, every rank writes
    trainer: bool = True  # transformers' Trainer wrote trainer_state.json and every rank's rng_state


_HUGGING_FACE = r"(.*/)?(adapter_model|model|pytorch_model)[^/]*\.(safetensors|bin)"
LAYOUTS = (
    # ms-swift: megatron/utils/megatron_lm_utils.py save_mcore_checkpoint. The tracker is written before the
    # safetensors are, and with async_save before anything: only the metadata say that the shards are whole.
    Layout(
        name="Megatron",
        mark=r"latest_checkpointed_iteration\.txt|iter_\d+/.*",
        weights=rf"iter_0*{{n}}/(\.metadata|metadata\.json)|{_HUGGING_FACE}",
        state={
            "latest_checkpointed_iteration.txt": r"latest_checkpointed_iteration\.txt",
            "the metadata of its shards": r"iter_0*{n}/(\.metadata|metadata\.json)",
        },
        trainer=False,
    ),
    # DeepSpeed: runtime/engine.py save_checkpoint writes `latest` last; without ZeRO the model states hold
    # the optimizer too.
    Layout(
        name="DeepSpeed",
        mark=r"latest|global_step\d+/.*",
        weights=rf"global_step\d+/.*model_states\.pt|{_HUGGING_FACE}",
        state={
            "DeepSpeed's `latest`": "latest",
            "DeepSpeed's model states": r"global_step\d+/.*model_states\.pt",
        },
        each_rank=r"global_step\d+/.*zero_pp_rank_\d+_mp_rank_\d+_optim_states\.pt",
    ),
    # accelerate: utils/fsdp_utils.py; torch.distributed.checkpoint writes .metadata last.
    Layout(
        name="FSDP",
        mark=r"pytorch_model_fsdp.*|optimizer(_\d+(/|_rank).*|\.bin)",
        weights=r"pytorch_model_fsdp(_\d+/\.metadata|(_\d+)?(_rank\d+)?\.bin)",
        state={
            "the optimizer's state": r"optimizer(_\d+/\.metadata|(_\d+)?(_rank\d+)?\.bin)",
            "scheduler.pt": r"scheduler\.pt",
        },
        each_rank=r"optimizer_\d+_rank\d+\.bin",
    ),
    Layout(
        name="transformers",
        mark=r".*",
        weights=_HUGGING_FACE,
        state={"the optimizer's state": r"optimizer\.pt", "scheduler.pt": r"scheduler\.pt"},
    ),
)


@dataclass(frozen=True)
class CheckpointFacts:
    """What was found in one checkpoint folder; paths are relative to it."""

    name: str
    files: Mapping[str, int]  # path -> bytes
    global_step: int | None  # trainer_state.json; None: missing or unreadable
    torn: tuple[str, ...] = ()  # safetensors of another size than their header says, unreadable archives
    save_only_model: bool = False
    best: str | None = None  # trainer_state.json's best_model_checkpoint


def incomplete_because(facts: CheckpointFacts, ranks: int = 1, *, to_resume: bool = False) -> str | None:
    """Why this checkpoint must not be used; None when it is complete for that many ranks."""
    match = NAME.match(facts.name)
    if not match:
        return "its name is not checkpoint-<step>"
    if INCOMPLETE_MARK in facts.files:
        return f"{INCOMPLETE_MARK} says that writing did not end"
    layout = next(a for a in LAYOUTS if _count(facts, a.mark) or a is LAYOUTS[-1])
    step = int(match[1])
    if layout.trainer and facts.global_step is None:
        return "trainer_state.json is missing or unreadable"
    if layout.trainer and facts.global_step != step:
        return f"trainer_state.json is of step {facts.global_step}"
    if facts.torn:
        return f"{facts.torn[0]} is cut off"
    if not _count(facts, layout.weights.replace("{n}", str(step))):
        return "it holds no whole weights"
    missing = _missing_shard(facts)
    if missing:
        return f"{missing} is missing"
    if facts.save_only_model:
        return "it was saved without what training needs to go on" if to_resume else None
    return _not_resumable(facts, layout, step, ranks)


def _not_resumable(facts: CheckpointFacts, layout: Layout, step: int, ranks: int) -> str | None:
    for what, pattern in layout.state.items():
        if not _count(facts, pattern.replace("{n}", str(step))):
            return f"{what} is missing"
    if layout.each_rank and 0 < _count(facts, layout.each_rank) < ranks:
        return f"only {_count(facts, layout.each_rank)} of {ranks} ranks have saved their optimizer"
    states = ["rng_state.pth"] if ranks == 1 else [f"rng_state_{r}.pth" for r in range(ranks)]
    gone = [name for name in states if name not in facts.files] if layout.trainer else []
    return f"{gone[0]} is missing" if gone else None


def _count(facts: CheckpointFacts, pattern: str) -> int:
    return sum(1 for f in facts.files if re.fullmatch(pattern, f))


def _missing_shard(facts: CheckpointFacts) -> str | None:
    """A shard that the names of the others promise: model-00001-of-00002.safetensors."""
    for match in filter(None, map(_SHARD.match, facts.files)):
        head, _, of, count, tail = match.groups()
        names = (f"{head}{i:05d}{of}{count}{tail}" for i in range(1, int(count) + 1))
        gone = next((n for n in names if n not in facts.files), None)
        if gone:
            return gone
    return None
