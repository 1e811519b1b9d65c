"""Training with ms-swift: pt, sft, rlhf, and the same on Megatron."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from runner.core.kinds.added import Added
from runner.core.plan import OUTPUT, Command, Draft, Output, StepScope
from runner.core.spec import SwiftStep

CHECKPOINTS = {
    "checkpoint": Output(find="checkpoint"),
    "best_checkpoint": Output(find="best_checkpoint"),
    "logging": Output(find="path", at=f"{OUTPUT}/logging.jsonl"),
    "output_dir": Output(find="path"),
}

Report = Annotated[list[Literal["tensorboard", "swanlab", "wandb"]], Field(min_length=1)]


class TrainStep(SwiftStep):
    """A step that trains, and reports how that goes."""

    report: Report | None = Field(default=None, description="null: what the job says")


class SftStep(TrainStep):
    """Supervised fine-tuning: `swift sft`."""

    kind: Literal["sft"]
    swift_command: ClassVar[str] = "sft"
    spreads: ClassVar[bool] = True

    def draft(self, scope: StepScope) -> Draft:
        """`swift sft` with one output folder and a checkpoint on stop."""
        return _train(self, scope, ("swift", "sft"))


class PtStep(TrainStep):
    """Continued pre-training: `swift pt`."""

    kind: Literal["pt"]
    swift_command: ClassVar[str] = "pt"
    spreads: ClassVar[bool] = True

    def draft(self, scope: StepScope) -> Draft:
        """`swift pt`, otherwise as sft."""
        return _train(self, scope, ("swift", "pt"))


class RlhfStep(TrainStep):
    """Preference and reinforcement learning, chosen by `args.rlhf_type`: `swift rlhf`."""

    kind: Literal["rlhf"]
    swift_command: ClassVar[str] = "rlhf"
    spreads: ClassVar[bool] = True

    def draft(self, scope: StepScope) -> Draft:
        """`swift rlhf`, otherwise as sft."""
        return _train(self, scope, ("swift", "rlhf"))


class MegatronPtStep(TrainStep):
    """Continued pre-training on Megatron: `megatron pt`."""

    kind: Literal["megatron-pt"]
    swift_command: ClassVar[str] = "megatron pt"
    spreads: ClassVar[bool] = True

    def draft(self, scope: StepScope) -> Draft:
        """`megatron pt` under torchrun."""
        return _megatron(self, scope, ("megatron", "pt"))


class MegatronSftStep(TrainStep):
    """Supervised fine-tuning on Megatron: `megatron sft`."""

    kind: Literal["megatron-sft"]
    swift_command: ClassVar[str] = "megatron sft"
    spreads: ClassVar[bool] = True

    def draft(self, scope: StepScope) -> Draft:
        """`megatron sft` under torchrun."""
        return _megatron(self, scope, ("megatron", "sft"))


class MegatronRlhfStep(TrainStep):
    """Preference and reinforcement learning on Megatron: `megatron rlhf`."""

    kind: Literal["megatron-rlhf"]
    swift_command: ClassVar[str] = "megatron rlhf"
    spreads: ClassVar[bool] = True

    def draft(self, scope: StepScope) -> Draft:
        """`megatron rlhf` under torchrun."""
        return _megatron(self, scope, ("megatron", "rlhf"))


class MegatronExportStep(SwiftStep):
    """Convert between Megatron and Hugging Face weights: `megatron export`."""

    kind: Literal["megatron-export"]
    swift_command: ClassVar[str] = "megatron export"
    spreads: ClassVar[bool] = True

    def draft(self, scope: StepScope) -> Draft:
        """`megatron export` into the step's folder."""
        added = Added(self.args, self.extra_args, scope.known_args)
        added.arg("output_dir", f"{OUTPUT}/model", "the converted weights stay inside the run's folder")
        added.megatron(scope, self.env)
        return Draft(
            commands=(Command(name="export", argv=("megatron", "export", *added.argv())),),
            env=added.env,
            notes=tuple(added.notes),
            ports=added.ports,
            outputs={"model": Output(find="path", at=added.value("output_dir"))},
            stop="ranks",
        )


def _train(step: TrainStep, scope: StepScope, command: tuple[str, str]) -> Draft:
    added = Added(step.args, step.extra_args, scope.known_args)
    added.arg("output_dir", OUTPUT, "one folder inside the run, so that later steps and retries find it")
    added.arg("add_version", False, "no dated sub-folder: one folder and one logging.jsonl over all retries")
    added.arg(
        "check_model", False, "offline, ms-swift's look at the hub costs 22 s and no variable avoids it"
    )
    if scope.cpu:
        added.arg(
            "use_cpu", True, "on the CPU two processes would be two unsynchronised trainings without it"
        )
    added.arg("enable_jit_checkpoint", True, "without it ms-swift writes no checkpoint when it is stopped")
    added.report(scope, step)
    added.distributed(scope, step.env)
    return _draft(step, added, command)


def _megatron(step: TrainStep, scope: StepScope, command: tuple[str, str]) -> Draft:
    added = Added(step.args, step.extra_args, scope.known_args)
    added.arg("output_dir", OUTPUT, "one folder inside the run, so that later steps and retries find it")
    added.arg("add_version", False, "no dated sub-folder: one folder and one logging.jsonl over all retries")
    added.arg(
        "check_model", False, "offline, ms-swift's look at the hub costs 22 s and no variable avoids it"
    )
    added.report(scope, step, megatron=True)
    added.megatron(scope, step.env)
    return _draft(step, added, command).model_copy(update={"resumable": False})


def _draft(step: TrainStep, added: Added, command: tuple[str, str]) -> Draft:
    folder = added.value("output_dir")
    return Draft(
        commands=(Command(name=step.name, argv=(*command, *added.argv())),),
        env=added.env,
        notes=tuple(added.notes),
        ports=added.ports,
        outputs={
            k: o.model_copy(update={"at": o.at.replace(OUTPUT, folder)}) for k, o in CHECKPOINTS.items()
        },
        stop="ranks",
        resumable="resume_from_checkpoint" not in step.args,
    )
