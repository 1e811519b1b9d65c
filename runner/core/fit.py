"""Will the checkpoints of a job fit on the disk? An estimate from the model's files, before it starts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from runner.core.inputs import first_of, flags_of
from runner.core.job import Job
from runner.core.kinds import AnyStep
from runner.core.plan import argv_of
from runner.core.sizes import size_text
from runner.core.spec import SwiftStep
from runner.errors import Finding

_TRAINS = re.compile(r"(megatron-)?(sft|pt|rlhf)")
_STEP_OUTPUT = re.compile(r"\$\{\{\s*steps\.([\w-]+)\.(\w+)\s*\}\}")
_WIDTHS = {"float32": 4, "fp32": 4, "float16": 2, "fp16": 2, "bfloat16": 2, "bf16": 2}
_NO_LORA = re.compile(r"embed|lm_head|wte|wpe|score|visual|vision|audio|aligner|projector|merger")
_EMBEDDING = re.compile(r"embed_tokens|lm_head|wte")
_SMALL = 64 << 10  # what a checkpoint holds besides weights and optimizer: arguments, states, a README
_UNKNOWN_SAVES = 2


@dataclass(frozen=True)
class ModelFacts:
    """What the files of a model say: bytes of weights and of all the rest, and the shapes of its matrices."""

    weights: int
    others: int
    parameters: int
    width: int  # bytes of most of the parameters
    matrices: tuple[tuple[str, int, int], ...] = ()  # name without `.weight`, rows, columns


@dataclass(frozen=True)
class Space:
    """The file system that a folder is on."""

    device: int
    at: str
    free: int


@dataclass(frozen=True)
class Need:
    """What one step writes at most at the same time."""

    index: int
    step: str
    count: int
    each: int
    what: str
    output: str | None  # where to, as the job says; None: the run's folder

    @property
    def size(self) -> int:
        """All of it."""
        return self.count * self.each

    @property
    def text(self) -> str:
        """In words, with the numbers."""
        if self.count == 1:
            return f"about {size_text(self.each)} for {self.what}"
        return f"about {self.count} {self.what}s of {size_text(self.each)} = {size_text(self.size)}"


Flags = Mapping[str, list[str]]
FindModel = Callable[[str], ModelFacts | None]
FindSpace = Callable[[str | None], Space | None]


def fit_findings(job: Job, model: FindModel, space: FindSpace) -> list[Finding]:
    """A warning for each file system on which the job's checkpoints and models will not fit."""
    there: dict[int, tuple[Space, list[Need]]] = {}
    for need in needs_of(job, model):
        if found := space(need.output):
            there.setdefault(found.device, (found, []))[1].append(need)
    return [_too_big(job, place, needs) for place, needs in there.values() if _sum(needs) > place.free]


def needs_of(job: Job, model: FindModel) -> list[Need]:
    """What the steps write whose model is on this machine; nothing for those of which too little is known."""
    found = []
    for i, step in enumerate(job.spec.steps):
        flags = step_flags(step)
        if not _TRAINS.fullmatch(step.kind) and step.kind not in ("merge", "megatron-export"):
            continue
        facts = _facts(job, step, model, set())
        if facts is None:
            continue
        if _TRAINS.fullmatch(step.kind):
            megatron = step.kind.startswith("megatron")
            count, each, what = (
                kept_checkpoints(flags),
                checkpoint_bytes(facts, flags, megatron),
                "checkpoint",
            )
        else:
            count, each, what = 1, facts.weights + facts.others, "the whole model"
        if count and each:
            found.append(Need(i, step.name, count, each, what, _output(flags)))
    return found


def step_flags(step: AnyStep) -> dict[str, list[str]]:
    """The flags of a step by name, those of `extra_args` too."""
    if not isinstance(step, SwiftStep):
        return {}
    return flags_of([*argv_of(step.args), *step.extra_args])


def kept_checkpoints(flags: Flags) -> int:
    """How many checkpoints are there at most at once: a new one is written before the oldest is removed."""
    saves = _saves(flags)
    limit = _number(flags, "save_total_limit") or 0
    if limit < 1:
        return _UNKNOWN_SAVES if saves is None else saves
    most = int(limit) + 1
    return most if saves is None else min(saves, most)


def checkpoint_bytes(model: ModelFacts, flags: Flags, megatron: bool = False) -> int:
    """The size of one checkpoint of a training; 0 when too little is known."""
    only_model = _is(flags, "save_only_model") or _is(flags, "no_save_optim")
    tuner = first_of(flags, "tuner_type") or first_of(flags, "train_type") or "lora"
    if tuner == "full":
        width = _WIDTHS.get(first_of(flags, "torch_dtype") or "", max(model.width, 2))
        state = 0.0 if only_model else _optimizer_width(flags, width, megatron)
        return int(model.parameters * (width + state)) + model.others + _SMALL
    if tuner != "lora" or not model.matrices:
        return 0
    # peft keeps adapters in float32 also where the model is not (autocast_adapter_dtype)
    state = 0.0 if only_model else _optimizer_width(flags, 4, megatron)
    size = int(_adapter_parameters(model, flags) * (4 + state)) + _SMALL
    merged = megatron and "false" not in (first_of(flags, "merge_lora"), first_of(flags, "save_safetensors"))
    return size + (model.weights + model.others if merged else 0)


def _adapter_parameters(model: ModelFacts, flags: Flags) -> int:
    rank = int(_number(flags, "lora_rank") or 8)
    targets = flags.get("target_modules") or ["all-linear"]
    saved = flags.get("modules_to_save") or []
    total = 0
    for name, rows, columns in model.matrices:
        last = name.rpartition(".")[2]
        if last in saved or ("all-embedding" in saved and _EMBEDDING.search(name)):
            total += rows * columns
        elif last in targets or ("all-linear" in targets and not _NO_LORA.search(name)):
            total += rank * (rows + columns)
    return total


def _optimizer_width(flags: Flags, width: int, megatron: bool) -> float:
    """Bytes for each trained parameter besides its weight.

    torch's AdamW keeps two moments of the parameter's own type; DeepSpeed, FSDP and Megatron keep them and a
    master copy in float32; ZeRO 1 and 2 and Megatron write the weights once more beside the safetensors.
    """
    optim = (first_of(flags, "optim") or "").lower()
    if megatron:
        return 12 if first_of(flags, "save_safetensors") == "false" else 12 + width
    if deepspeed := first_of(flags, "deepspeed"):
        return 12 if "zero3" in deepspeed else 12 + width
    if "fsdp" in flags:
        return 12
    if "8bit" in optim:
        return 2
    if "adafactor" in optim or optim == "sgd" or _is(flags, "use_galore"):
        return 0
    return width if "lion" in optim else 2 * width


def _saves(flags: Flags) -> int | None:
    """How often training saves; None when only the data could tell."""
    strategy = first_of(flags, "save_strategy") or "steps"
    if strategy == "no":
        return 0
    steps = _number(flags, "max_steps") or _number(flags, "train_iters") or 0
    every = _number(flags, "save_steps") or 500
    if strategy == "epoch" and steps <= 0:
        return math.ceil(_number(flags, "num_train_epochs") or 3)
    if strategy != "steps":
        return None
    if 0 < every < 1:
        return math.ceil(1 / every)
    return math.ceil(steps / every) if steps > 0 and every >= 1 else None


def _facts(job: Job, step: AnyStep, model: FindModel, seen: set[str]) -> ModelFacts | None:
    """The model that a step reads: a local one, or what a step before it downloads, merges or trains on."""
    seen.add(step.name)
    if step.kind == "download":
        return model(step.model) if step.model else None
    flags = step_flags(step)
    text = first_of(flags, "model") or first_of(flags, "adapters") or ""
    match = _STEP_OUTPUT.fullmatch(text)
    if match is None:
        return model(text) if text and "${{" not in text and "model" in flags else None
    before = next((s for s in job.spec.steps if s.name == match[1] and s.name not in seen), None)
    return _facts(job, before, model, seen) if before else None


def _output(flags: Flags) -> str | None:
    written = first_of(flags, "output_dir")
    return None if written is None or "${{" in written else written


def _too_big(job: Job, space: Space, needs: list[Need]) -> Finding:
    most = max(needs, key=lambda n: n.size)
    said = "; ".join(f"step '{n.step}' writes {n.text}" for n in needs)
    together = f", together {size_text(_sum(needs))}" if len(needs) > 1 else ""
    step = job.spec.steps[most.index]
    named = [f for f in ("save_total_limit", "model", "adapters") if f in getattr(step, "args", {})]
    hint = "lower save_total_limit, or set RUNNER_HOME to a larger disk"
    if most.what != "the whole model" and most.output:
        hint = "lower save_total_limit, or give another output_dir"
    return job.at(
        most.index, "args", *named[:1], code="disk", severity="warning", hint=hint,
        message=f"{said}{together}, and {size_text(space.free)} are free at {space.at}",
    )  # fmt: skip


def _sum(needs: list[Need]) -> int:
    return sum(n.size for n in needs)


def _is(flags: Flags, name: str) -> bool:
    return flags.get(name) is not None and (first_of(flags, name) or "true").lower() in ("true", "1", "yes")


def _number(flags: Flags, name: str) -> float | None:
    try:
        return float(first_of(flags, name) or "")
    except ValueError:
        return None
