"""Ask a running service a real question over HTTP."""

import json
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from runner.core.plan import INSIDE, OUTPUT, Command, Draft, Output, StepScope
from runner.core.spec import Model, StepBase, StepName


class Expect(Model):
    """What the answer must look like; white space around it and an empty think block do not count."""

    contains: str | None = None
    equals: str | None = None
    matches: str | None = Field(default=None, description="a regular expression that is searched for")

    @model_validator(mode="after")
    def _one(self) -> "Expect":
        if sum(v is not None for v in (self.contains, self.equals, self.matches)) != 1:
            raise ValueError("needs exactly one of contains, equals, matches")
        return self


class ProbeStep(StepBase):
    """Send one request to a service of this job and check the answer."""

    kind: Literal["probe"]
    most_npus: ClassVar[int] = 0
    target: StepName
    request: dict[str, Any]
    path: str = "/v1/chat/completions"
    expect: Expect | None = None

    def draft(self, scope: StepScope) -> Draft:
        """The shipped probe script with the request in a file."""
        body = dict(self.request)
        if self.target in scope.served:
            body = {"model": scope.served[self.target], **body}
        request = {
            "url": f"${{{{ steps.{self.target}.endpoint }}}}",
            "path": self.path,
            "body": body,
            "expect": self.expect.model_dump(exclude_none=True) if self.expect else None,
            "timeout_s": self.timeout or 300.0,
            "out": f"{OUTPUT}/answer.json",
        }
        argv = ("python", f"{INSIDE}/probe.py", "${{ here.dir }}/request.json")
        return Draft(
            commands=(Command(name="probe", argv=argv),),
            files={"request.json": json.dumps(request, ensure_ascii=False, indent=1) + "\n"},
            outputs={
                "result": Output(find="path", at=f"{OUTPUT}/answer.json"),
                "answer": Output(find="json", at=f"{OUTPUT}/answer.json", key="normalised"),
            },
            needs=(self.target,),
        )
