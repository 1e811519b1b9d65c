"""Anything else: a command or a script of one's own, and the check that the NPU is usable."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from runner.core.kinds.added import Added
from runner.core.plan import INSIDE, OUTPUT, Command, Draft, Output, StepScope
from runner.core.spec import EnvText, StepBase


class CommandStep(StepBase):
    """Run a command (a list of words, no shell) or a shell script in the stack's environment."""

    kind: Literal["command"]
    spreads: ClassVar[bool] = True
    command: list[EnvText] | None = Field(default=None, min_length=1)
    script: str | None = Field(default=None, min_length=1, description="run by `sh -eu`")

    def draft(self, scope: StepScope) -> Draft:
        """The command as it is, or the script as a file."""
        added = Added({}, (), None)
        added.devices(scope, {**scope.env, **self.env})
        script = "${{ here.dir }}/script.sh"
        argv = tuple(self.command) if self.command else ("sh", "-eu", script)
        return Draft(
            commands=(Command(name=self.name, argv=argv),),
            env={"RUNNER_OUTPUT": OUTPUT, **added.env},
            files={"script.sh": self.script} if self.script is not None else {},
            notes=tuple(added.notes),
            outputs={"output_dir": Output(find="path")},
        )

    @model_validator(mode="after")
    def _one_form(self) -> "CommandStep":
        if (self.command is None) == (self.script is None):
            raise ValueError("needs either 'command' (a list of words) or 'script' (text for sh)")
        return self


class CheckStep(StepBase):
    """Is the NPU usable in this image? The guide's own test."""

    kind: Literal["check"]
    spreads: ClassVar[bool] = True

    def draft(self, scope: StepScope) -> Draft:
        """torch and torch_npu import, see the devices, and compute on each of them."""
        added = Added({}, (), None)
        added.devices(scope, {**scope.env, **self.env})
        argv = (
            "python",
            f"{INSIDE}/check_npu.py",
            "--npus",
            str(scope.npus),
            "--out",
            f"{OUTPUT}/check.json",
        )
        return Draft(
            commands=(Command(name="check", argv=argv),),
            env=added.env,
            notes=tuple(added.notes),
            outputs={"result": Output(find="path", at=f"{OUTPUT}/check.json")},
        )
