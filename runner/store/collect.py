"""What a step leaves behind, as the values that later steps read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runner.core.expr import resolve
from runner.core.plan import Output, PlannedStep
from runner.files import read_json
from runner.store.folders import RunFolder
from runner.store.outputs import best_checkpoint, complete_checkpoints, judged_checkpoints


def collect_outputs(step: PlannedStep, run: RunFolder, ports: Mapping[str, int]) -> dict[str, str]:
    """Every output that is there; one that is not is left out."""
    found = {}
    for name, output in step.outputs.items():
        value = _value(step, output, run, ports)
        if value is not None:
            found[name] = value
    return found


def resume_point(step: PlannedStep, output: Path) -> tuple[str | None, list[str]]:
    """The newest checkpoint that training can go on from, if any, and what to say of those passed over."""
    judged = judged_checkpoints(output, step.nproc * step.nodes, to_resume=True)
    said: list[str] = []
    for path, why in reversed(judged):
        if why is None:
            return str(path), [*said, f"going on from {path.name}"]
        said.append(f"{path.name} is skipped: {why}")
    return None, [*said, "no complete checkpoint to go on from: starting anew"]


def _value(step: PlannedStep, output: Output, run: RunFolder, ports: Mapping[str, int]) -> str | None:
    ranks = step.nproc * step.nodes
    match output.find:
        case "endpoint":
            return f"http://127.0.0.1:{ports['http']}"
        case "host":
            return "127.0.0.1"
        case "port":
            return str(ports["http"])
    at = _path(step, output.at, run)
    match output.find:
        case "path":
            return at
        case "checkpoint":
            complete = complete_checkpoints(Path(at), ranks)
            return str(complete[-1]) if complete else None
        case "best_checkpoint":
            best = best_checkpoint(Path(at), ranks)
            return str(best) if best else None
        case "json":
            record = read_json(Path(at)) or {}
            return str(record[output.key]) if output.key in record else None
    return None


def _path(step: PlannedStep, text: str, run: RunFolder) -> str:
    def lookup(path: tuple[str, ...]) -> object:
        match path:
            case ("here", "output"):
                return str(run.output(step.name))
            case ("run", "dir"):
                return str(run.path)
        raise KeyError(".".join(path))

    at = str(resolve(text, lookup))
    if "/" not in at or at.startswith("/"):
        return at
    last = max((run.step(step.name) / "attempts").glob("*/attempt.json"), key=_written, default=None)
    record = read_json(last) if last else None
    return str((Path(record["cwd"]) if record else run.snapshot) / at)


def _written(path: Path) -> float:
    return path.stat().st_mtime
