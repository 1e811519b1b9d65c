"""Steps that move or change weights: merge, export, push, download."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from runner.core.kinds.added import Added
from runner.core.plan import INSIDE, OUTPUT, Command, Draft, Note, Output, StepScope
from runner.core.spec import StepBase, SwiftStep


class MergeStep(SwiftStep):
    """Merge a LoRA adapter into its base model, and prove that the result computes the same."""

    kind: Literal["merge"]
    verify: bool = Field(
        default=True, description="compare the logits of base+adapter with the merged model's"
    )
    tolerance: float | None = Field(
        default=None, gt=0, description="largest relative logit difference; None: by dtype"
    )
    swift_command: ClassVar[str] = "export"

    def draft(self, scope: StepScope) -> Draft:
        """`swift export --merge_lora true`, then the comparison."""
        added = Added(self.args, self.extra_args, scope.known_args)
        added.arg("merge_lora", True, "kind merge")
        added.arg("output_dir", f"{OUTPUT}/model", "a fixed place that later steps and retries find")
        added.devices(scope, {**scope.env, **self.env})
        model = added.value("output_dir")
        commands = [Command(name="merge", argv=("swift", "export", *added.argv()))]
        notes = list(added.notes)
        if self.verify:
            argv = [
                "python",
                f"{INSIDE}/verify_merge.py",
                "--adapter",
                added.value("adapters"),
                "--merged",
                model,
            ]
            argv += ["--out", f"{OUTPUT}/verify.json"]
            argv += ["--tolerance", repr(self.tolerance)] if self.tolerance else []
            commands.append(Command(name="verify", argv=tuple(argv)))
            notes.append(
                Note(
                    what="verify_merge.py", why="a merge is verified, not assumed (`verify: false` skips it)"
                )
            )
        return Draft(
            commands=tuple(commands),
            env=added.env,
            notes=tuple(notes),
            outputs={
                "model": Output(find="path", at=model),
                "verify": Output(find="path", at=f"{OUTPUT}/verify.json"),
            },
        )

    @model_validator(mode="after")
    def _needs_one_adapter(self) -> "MergeStep":
        if self.verify and not isinstance(self.args.get("adapters"), str):
            raise ValueError("args.adapters must name the one adapter to merge")
        return self


class ExportStep(SwiftStep):
    """Quantise, convert or cache: `swift export`."""

    kind: Literal["export"]
    swift_command: ClassVar[str] = "export"

    def draft(self, scope: StepScope) -> Draft:
        """`swift export` into the step's folder."""
        added = Added(self.args, self.extra_args, scope.known_args)
        added.arg("output_dir", f"{OUTPUT}/model", "a fixed place that later steps and retries find")
        added.devices(scope, {**scope.env, **self.env})
        return Draft(
            commands=(Command(name="export", argv=("swift", "export", *added.argv())),),
            env=added.env,
            notes=tuple(added.notes),
            outputs={"model": Output(find="path", at=added.value("output_dir"))},
        )


class PushStep(SwiftStep):
    """Publish a checkpoint or a model: `swift export --push_to_hub true`."""

    kind: Literal["push"]
    swift_command: ClassVar[str] = "export"

    def draft(self, scope: StepScope) -> Draft:
        """`swift export --push_to_hub true`."""
        added = Added(self.args, self.extra_args, scope.known_args)
        added.arg("push_to_hub", True, "kind push")
        added.devices(scope, {**scope.env, **self.env})
        return Draft(
            commands=(Command(name="push", argv=("swift", "export", *added.argv())),),
            env=added.env,
            notes=tuple(added.notes),
        )


class DownloadStep(StepBase):
    """Bring a model or a data set from ModelScope or Hugging Face into the cache, at a pinned revision."""

    kind: Literal["download"]
    most_npus: ClassVar[int] = 0
    model: str | None = None
    dataset: str | None = None
    hub: Literal["modelscope", "huggingface"] = "modelscope"
    revision: str | None = Field(default=None, description="a tag, branch or commit; what it was is recorded")

    def draft(self, scope: StepScope) -> Draft:
        """The shipped download script, whose record holds the folder and the revision."""
        what = ["--model", self.model] if self.model else ["--dataset", str(self.dataset)]
        argv = [
            "python",
            f"{INSIDE}/download.py",
            *what,
            "--hub",
            self.hub,
            "--out",
            f"{OUTPUT}/download.json",
        ]
        argv += ["--revision", self.revision] if self.revision else []
        found = Output(find="json", at=f"{OUTPUT}/download.json", key="path")
        return Draft(
            commands=(Command(name="download", argv=tuple(argv)),), outputs={"model": found, "path": found}
        )

    @model_validator(mode="after")
    def _one_thing(self) -> "DownloadStep":
        if (self.model is None) == (self.dataset is None):
            raise ValueError("needs either 'model' or 'dataset'")
        return self
