"""What the runner adds to an ms-swift command unless the spec says otherwise, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from runner.core.plan import Note, StepScope, argv_of
from runner.core.spec import SwiftStep

DEVICES = "${{ here.devices }}"
MASTER_PORT = "${{ here.port.master }}"


class Added:
    """Collects the additions of one step; the spec's own flags and variables always win."""

    def __init__(
        self, args: Mapping[str, object], extra: Sequence[str], known: frozenset[str] | None
    ) -> None:
        self._args = dict(args)
        self._extra = tuple(extra)
        self._known = known
        self.env: dict[str, str] = {}
        self.ports: dict[str, int | None] = {}
        self.notes: list[Note] = []

    def arg(self, name: str, value: object, why: str) -> None:
        """Add a flag, unless the spec has it or the stack's ms-swift does not know it."""
        if self.has(name):
            return
        if self._known is not None and name not in self._known:
            return
        self._args[name] = value
        self.notes.append(Note(what=" ".join(argv_of({name: value})), why=why))

    def has(self, name: str) -> bool:
        """Whether the flag is given already."""
        return name in self._args or any(t == f"--{name}" or t.startswith(f"--{name}=") for t in self._extra)

    def var(self, name: str, value: str, why: str, own: Mapping[str, str]) -> None:
        """Add a variable, unless the spec has it."""
        if name not in own:
            self.env[name] = value
            self.notes.append(Note(what=f"{name}={value}", why=why))

    def value(self, name: str) -> str:
        """The flag's value as it will be given."""
        if name in self._args:
            return str(self._args[name])
        for token, following in pairwise([*self._extra, ""]):
            if token == f"--{name}":
                return following
            if token.startswith(f"--{name}="):
                return token.split("=", 1)[1]
        return ""

    def argv(self) -> list[str]:
        """The flags in the order written, then ours, then `extra_args` as they are."""
        return [*argv_of(self._args), *self._extra]

    def devices(self, scope: StepScope, own: Mapping[str, str]) -> None:
        """Show the step its own devices and no others."""
        if scope.npus:
            self.var(
                "ASCEND_RT_VISIBLE_DEVICES", DEVICES, "the devices this step holds, as it sees them", own
            )

    def distributed(self, scope: StepScope, own: Mapping[str, str], *, spread: bool = True) -> None:
        """One process per device where the work is spread over them, and a port of their own to meet on."""
        own = {**scope.env, **own}
        self.devices(scope, own)
        if spread and scope.nproc > 1:
            self.var("NPROC_PER_NODE", str(scope.nproc), "one process per device (guide, FAQ Q7)", own)
        if "NPROC_PER_NODE" in {**own, **self.env} and "MASTER_PORT" not in own:
            self.ports["master"] = None
            self.var("MASTER_PORT", MASTER_PORT, "a port that no other job on this host uses", own)

    def megatron(self, scope: StepScope, own: Mapping[str, str]) -> None:
        """Megatron always runs under torchrun, from the one source tree that MEGATRON_LM_PATH names."""
        merged = {**scope.env, **own}
        self.var("NPROC_PER_NODE", str(max(1, scope.nproc)), "megatron commands run under torchrun", merged)
        self.distributed(scope, own, spread=False)
        if "MEGATRON_LM_PATH" in merged:
            tree = merged["MEGATRON_LM_PATH"]
            path = merged.get("PYTHONPATH", "")
            if tree not in path.split(":"):
                self.env["PYTHONPATH"] = f"{tree}:{path}" if path else tree
                self.notes.append(
                    Note(
                        what=f"PYTHONPATH={self.env['PYTHONPATH']}",
                        why="the same Megatron-LM as MEGATRON_LM_PATH (guide, FAQ Q14)",
                    )
                )

    def report(self, scope: StepScope, step: SwiftStep, *, megatron: bool = False) -> None:
        """Say where metrics are reported to, unless the args do; what reporters write stays with the step."""
        if not scope.report or self.has("report_to"):
            return
        folder = self.value("output_dir")
        where = self.value("logging_dir") or self.value("tensorboard_dir") or f"{folder}/runs"
        events = f"; events go to {where}" if "tensorboard" in scope.report else ""
        self.arg("report_to", list(scope.report), f"`report` of the spec{events}")
        own = {**scope.env, **step.env}
        if "swanlab" in scope.report:
            self.arg("swanlab_project", scope.job, "the job is the project")
            self.arg("swanlab_exp_name", f"{step.name}-${{{{ run.id }}}}", "every run is an experiment")
            why = "" if self.has("swanlab_token") else _unsent(scope, step, "SWANLAB_API_KEY")
            if why and megatron:
                self.var("SWANLAB_MODE", "offline", why, own)  # it has no --swanlab_mode
            elif why:
                self.arg("swanlab_mode", "local", why)
            if not megatron:  # which uses this very folder
                self.var("SWANLAB_LOG_DIR", f"{folder}/swanlab", "what it writes stays with the step", own)
        if "wandb" in scope.report:
            if megatron:
                self.arg("wandb_project", scope.job, "the job is the project")
            else:
                self.var("WANDB_PROJECT", scope.job, "the job is the project", own)
                self.var("WANDB_DIR", folder, "what it writes stays with the step", own)
            if why := _unsent(scope, step, "WANDB_API_KEY"):
                self.var("WANDB_MODE", "offline", why, own)


def _unsent(scope: StepScope, step: SwiftStep, key: str) -> str:
    """Why nothing can be sent to a reporter's server; empty when it can."""
    if scope.offline:
        return "offline: nothing is sent"
    named = {n for s in step.secrets for n in ((s,) if isinstance(s, str) else s)}
    return "" if key in {*named, *scope.env, *step.env} else f"nothing is sent without the secret {key}"
