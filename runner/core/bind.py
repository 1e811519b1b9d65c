"""From a planned step and its placement to one attempt: every reference is answered here, nowhere else."""

import json
from typing import Any

from pydantic import Field

from runner.core.expr import resolve
from runner.core.plan import PlannedStep, Value


class Placement(Value):
    """Where one attempt runs: folders as the step sees them, ports and devices, and what came before."""

    attempt: str  # "12.train.1": run, step, try
    run: dict[str, str]  # id, name, dir, inside
    step_dir: str
    output: str
    cwd: str
    ports: dict[str, int] = Field(default_factory=dict)
    devices: tuple[int, ...] = ()
    outputs: dict[str, dict[str, str]] = Field(default_factory=dict)  # step -> output -> value
    resume_from: str | None = None


class Environment(Value):
    """What a backend gives every step of a stack: variables, programs, and scripts to source."""

    env: dict[str, str | None] = Field(default_factory=dict)
    path_prepend: tuple[str, ...] = ()
    source: tuple[str, ...] = ()


class Attempt(Value):
    """What `entry` is told (attempt.json), and the files that must lie beside it."""

    record: dict[str, Any]
    files: dict[str, str]


def bind(step: PlannedStep, place: Placement, around: Environment, secrets: str | None = None) -> Attempt:
    """One attempt of a step at its place; ExpressionError names a reference that nothing answers."""

    def lookup(path: tuple[str, ...]) -> object:
        return _answer(path, place)

    def text(value: str) -> str:
        return str(resolve(value, lookup))

    commands = []
    for i, command in enumerate(step.commands):
        argv = [text(t) for t in command.argv]
        if i == 0 and place.resume_from:
            argv += ["--resume_from_checkpoint", place.resume_from]
        commands.append(
            {"name": command.name, "argv": argv, "env": {k: text(v) for k, v in command.env.items()}}
        )
    env: dict[str, str | None] = {**around.env, **{k: text(v) for k, v in step.env.items()}}
    if step.extra_ports:
        env["RUNNER_PORTS"] = ",".join(str(place.ports[f"extra{i}"]) for i in range(step.extra_ports))
    ready = None
    if step.ready:
        ready = {**step.ready.model_dump(), "port": place.ports[step.ready.port], "headers": {}}
    record = {
        "schema": "attempt/1",
        "id": place.attempt,
        "commands": commands,
        "cwd": place.cwd,
        "env": env,
        "path_prepend": list(around.path_prepend),
        "source": [],
        "source_optional": list(around.source),
        "secrets": secrets,
        "timeout_s": step.timeout_s if step.ready is None else None,
        "grace_s": step.grace_s,
        "stop": step.stop,
        "log": "log.txt",
        "ready": ready,
    }
    return Attempt(record=record, files={n: _file(n, t, lookup) for n, t in step.files.items()})


def _answer(path: tuple[str, ...], place: Placement) -> object:
    match path:
        case ("run", word):
            return place.run[word]
        case ("here", "output"):
            return place.output
        case ("here", "dir"):
            return place.step_dir
        case ("here", "devices"):
            return ",".join(map(str, place.devices))
        case ("here", "port", name):
            return place.ports[name]
        case ("steps", step, output):
            return place.outputs[step][output]
    raise KeyError(".".join(path))


def _file(name: str, text: str, lookup: Any) -> str:
    if name.endswith((".json", ".jsonl")):
        return str(resolve(text, lambda path: json.dumps(str(lookup(path)), ensure_ascii=False)[1:-1]))
    return str(resolve(text, lookup))
