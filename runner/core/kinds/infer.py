"""Batch inference and evaluation."""

import json
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from runner.core.kinds.added import Added
from runner.core.plan import OUTPUT, Command, Draft, Output, StepScope
from runner.core.spec import SwiftStep

PROMPTS = "prompts.jsonl"


class InferStep(SwiftStep):
    """Answer a data set or a few prompts: `swift infer`."""

    kind: Literal["infer"]
    prompts: list[str] | None = Field(
        default=None, min_length=1, description="asked one by one, instead of a val_dataset"
    )
    swift_command: ClassVar[str] = "infer"

    def draft(self, scope: StepScope) -> Draft:
        """`swift infer` over a data set, with the answers in a file."""
        added = Added(self.args, self.extra_args, scope.known_args)
        files = {}
        if self.prompts is not None:
            rows = [{"messages": [{"role": "user", "content": p}]} for p in self.prompts]
            files[PROMPTS] = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)
            added.arg("val_dataset", f"${{{{ here.dir }}}}/{PROMPTS}", "the step's `prompts`, one row each")
        added.arg("result_path", f"{OUTPUT}/result.jsonl", "a fixed place that later steps find")
        added.distributed(scope, self.env, spread=False)
        return Draft(
            commands=(Command(name="infer", argv=("swift", "infer", *added.argv())),),
            env=added.env,
            files=files,
            notes=tuple(added.notes),
            ports=added.ports,
            outputs={"result": Output(find="path", at=added.value("result_path"))},
        )

    @model_validator(mode="after")
    def _has_questions(self) -> "InferStep":
        if (
            self.prompts is None
            and not {"val_dataset", "load_data_args"} & set(self.args)
            and not self.extra_args
        ):
            raise ValueError(
                "needs 'prompts' or args.val_dataset: without a terminal ms-swift's interactive form dies"
            )
        if self.prompts is not None and "val_dataset" in self.args:
            raise ValueError("has both 'prompts' and args.val_dataset; keep one")
        return self


class EvalStep(SwiftStep):
    """Evaluate a model with EvalScope: `swift eval`."""

    kind: Literal["eval"]
    swift_command: ClassVar[str] = "eval"

    def draft(self, scope: StepScope) -> Draft:
        """`swift eval` with its report in the step's folder."""
        added = Added(self.args, self.extra_args, scope.known_args)
        added.arg("eval_output_dir", OUTPUT, "the report stays inside the run's folder")
        added.devices(scope, {**scope.env, **self.env})
        return Draft(
            commands=(Command(name="eval", argv=("swift", "eval", *added.argv())),),
            env=added.env,
            notes=tuple(added.notes),
            outputs={"result": Output(find="path", at=added.value("eval_output_dir"))},
        )
