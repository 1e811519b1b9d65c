"""The kinds of steps. To add one: write its class in a file here, and name it once below."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runner.core.kinds.command import CheckStep, CommandStep
from runner.core.kinds.infer import EvalStep, InferStep
from runner.core.kinds.probe import ProbeStep
from runner.core.kinds.serve import AppStep, RolloutStep, ServeStep
from runner.core.kinds.train import (
    MegatronExportStep,
    MegatronPtStep,
    MegatronRlhfStep,
    MegatronSftStep,
    PtStep,
    RlhfStep,
    SftStep,
)
from runner.core.kinds.weights import DownloadStep, ExportStep, MergeStep, PushStep

AnyStep = (
    SftStep
    | PtStep
    | RlhfStep
    | MegatronPtStep
    | MegatronSftStep
    | MegatronRlhfStep
    | MegatronExportStep
    | MergeStep
    | ExportStep
    | InferStep
    | ServeStep
    | RolloutStep
    | ProbeStep
    | EvalStep
    | PushStep
    | AppStep
    | DownloadStep
    | CheckStep
    | CommandStep
)
Step = Annotated[AnyStep, Field(discriminator="kind")]
