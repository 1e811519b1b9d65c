"""Services: steps that become READY and live until their last consumer ended."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from runner.core.kinds.added import Added
from runner.core.plan import Command, Draft, Output, Ready, StepScope
from runner.core.spec import Restart, SwiftStep

HTTP = "${{ here.port.http }}"
ADDRESS = {"endpoint": Output(find="endpoint"), "host": Output(find="host"), "port": Output(find="port")}
LOOPBACK = "only this host reaches it; `host: 0.0.0.0` in args opens it to the network"


class ServeStep(SwiftStep):
    """An OpenAI-compatible server: `swift deploy`, on transformers or vLLM, or `vllm serve` itself."""

    kind: Literal["serve"]
    engine: Literal["transformers", "vllm", "vllm-serve"] = "transformers"
    keep: bool = Field(default=False, description="go on serving after the last consumer ended")
    restart: Restart = "never"
    service: ClassVar[bool] = True

    @property
    def swift_command(self) -> str | None:  # type: ignore[override]
        """`vllm serve` has flags of its own."""
        return None if self.engine == "vllm-serve" else "deploy"

    def draft(self, scope: StepScope) -> Draft:
        """The server on a port of its own, with a name by which READY can tell it from another."""
        if self.engine == "vllm-serve":
            return self._vllm(scope)
        added = Added(self.args, self.extra_args, scope.known_args)
        if self.engine == "vllm":
            added.arg("infer_backend", "vllm", "engine vllm")
        return _service(self, scope, added, ("swift", "deploy"), "served_model_name", added.argv)

    def _vllm(self, scope: StepScope) -> Draft:
        args = {k.replace("_", "-"): v for k, v in self.args.items() if k != "model"}
        added = Added(args, self.extra_args, None)
        model = str(self.args.get("model", ""))
        return _service(self, scope, added, ("vllm", "serve", model), "served-model-name", added.argv)


class RolloutStep(SwiftStep):
    """A vLLM server that generates for GRPO: `swift rollout`."""

    kind: Literal["rollout"]
    keep: bool = False
    restart: Restart = "never"
    service: ClassVar[bool] = True
    swift_command: ClassVar[str] = "rollout"

    def draft(self, scope: StepScope) -> Draft:
        """`swift rollout` on a port of its own; READY when it answers /health/."""
        added = Added(self.args, self.extra_args, scope.known_args)
        draft = _service(self, scope, added, ("swift", "rollout"), "", added.argv)
        return draft.model_copy(update={"ready": Ready(path="/health/", model=None)})


class AppStep(SwiftStep):
    """A web page to chat with a model: `swift app`."""

    kind: Literal["app"]
    keep: bool = True
    restart: Restart = "never"
    service: ClassVar[bool] = True
    swift_command: ClassVar[str] = "app"

    def draft(self, scope: StepScope) -> Draft:
        """`swift app` on a port of its own; READY when its page answers."""
        added = Added(self.args, self.extra_args, scope.known_args)
        draft = _service(
            self, scope, added, ("swift", "app"), "", added.argv, flags=("server_name", "server_port")
        )
        return draft.model_copy(update={"ready": Ready(path="/", model=None)})


def _service(
    step: Any,
    scope: StepScope,
    added: Added,
    command: tuple[str, ...],
    name_flag: str,
    argv: Any,
    flags: tuple[str, str] = ("host", "port"),
) -> Draft:
    host_flag, port_flag = flags
    wanted = step.args.get(port_flag)
    served = scope.served.get(step.name)
    if name_flag and served:
        added.arg(name_flag, served, "READY means an answer that knows this name")
    added.arg(host_flag, "127.0.0.1", LOOPBACK)
    added.arg(port_flag, HTTP, "a leased port: ms-swift silently moves to another one when a port is busy")
    added.devices(scope, {**scope.env, **step.env})
    return Draft(
        commands=(Command(name=step.name, argv=(*command, *argv())),),
        env=added.env,
        notes=tuple(added.notes),
        ports={"http": wanted if isinstance(wanted, int) else None, **added.ports},
        ready=Ready(model=served),
        outputs={**ADDRESS, **({"model_name": Output(find="path", at=served)} if served else {})},
        keep=step.keep,
        restart=step.restart,
    )
