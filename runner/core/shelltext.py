"""A plan as commands to copy and paste into a shell, with a reason for all that the runner added."""

from __future__ import annotations

import re
import shlex

from runner.core.plan import INSIDE, Plan, PlannedStep
from runner.core.template import Ref, parse_template

_HTTP, _MASTER, _EXTRA = 8000, 29500, 8100


def shell_text(plan: Plan) -> str:
    """The whole plan; `RUN` is any folder, references become shell variables."""
    head = [f"# {plan.name}: stack {plan.stack}, generation {plan.generation}"]
    head.append("# In the job file's folder, with the stack's environment active:")
    head.append('RUN="$PWD/runs/' + plan.name + '"')
    if any(INSIDE in text for step in plan.steps for c in step.commands for text in c.argv):
        head.append("INSIDE=$(runner plan --inside)   # the scripts that ship with the runner")
    services = [s for s in plan.steps if s.service]
    if services:
        head.append("set -m   # each service is a process group of its own, to be ended as a whole")
    lines = [line for step in plan.steps for line in _step(plan, step)]
    return "\n".join([*head, *lines, *_end(plan, services)]) + "\n"


def _end(plan: Plan, services: list[PlannedStep]) -> list[str]:
    """A service ends with its last consumer; one that has none, or is kept, runs on."""
    lasting = [s for s in services if s.keep or not plan.consumers(s.name)]
    lines = [f"kill -- -${_pid(s)}   # {s.name}" for s in reversed(services) if s not in lasting]
    if lasting:
        groups = " ".join(f"-${_pid(s)}" for s in reversed(lasting))
        lines.append(f"trap 'kill -- {groups}' INT; wait; trap - INT   # serving; Ctrl-C ends it")
    return ["", *lines] if lines else []


def _pid(service: PlannedStep) -> str:
    return re.sub(r"\W", "_", service.name).upper() + "_PID"


def _step(plan: Plan, step: PlannedStep) -> list[str]:
    waits = f", after {', '.join(step.needs)}" if step.needs else ""
    lines = ["", f"# {step.name} ({step.kind}){waits}"]
    lines += [f"#   {note.what}: {note.why}" for note in step.notes]
    for secret in step.secrets:
        for name, file in secret.items():
            lines.append(f"#   needs the secret {name}" + (f" from {file}" if file else ""))
    lines.append(f'mkdir -p "$RUN/steps/{step.name}/output"')
    lines += [f"{_variable(ref)}={_answer(plan, ref)}" for ref in _step_refs(step)]
    for name, text in step.files.items():
        lines.append(_file(plan, step, name, text))
    for command in step.commands:
        lines += _command(plan, step, {**step.env, **command.env}, command.argv)
    if step.ready:
        lines += [lines.pop() + " &", f"{_pid(step)}=$!"]
        url = f"http://127.0.0.1:{_port(plan, step, 'http')}{step.ready.path or '/'}"
        lines.append(f"until curl -sf {url} >/dev/null; do sleep 1; done")
    return lines


def _file(plan: Plan, step: PlannedStep, name: str, text: str) -> str:
    parts = parse_template(text)
    end, body = "'EOF'", text
    if any(isinstance(p, Ref) for p in parts):
        end = "EOF"
        body = "".join(
            re.sub(r"([\\$`])", r"\\\1", p) if isinstance(p, str) else _shell_ref(plan, step, p)
            for p in parts
        )
    return f'cat > "$RUN/steps/{step.name}/{name}" <<{end}\n{body.rstrip()}\nEOF'


def _command(plan: Plan, step: PlannedStep, env: dict[str, str], argv: tuple[str, ...]) -> list[str]:
    """One word group a line, as the guide writes them: a flag with its values."""
    groups = [[f"{name}={_value(plan, step, name, value)}"] for name, value in env.items()]
    words = [_word(plan, step, t) for t in argv]
    flags = [i for i, t in enumerate(argv) if t.startswith("--")] or [len(argv)]
    groups.append(words[: flags[0]])
    for start, end in zip(flags, [*flags[1:], len(argv)], strict=True):
        groups.append(words[start:end])
    lines = [" ".join(g) for g in groups if g]
    last = len(lines) - 1
    return ["  " * (i > 0) + line + " \\" * (i < last) for i, line in enumerate(lines)]


def _value(plan: Plan, step: PlannedStep, name: str, value: str) -> str:
    """What CANN's set_env.sh has put into PYTHONPATH stays in it."""
    word = _word(plan, step, value)
    return word + '"${PYTHONPATH:+:$PYTHONPATH}"' if name == "PYTHONPATH" else word


def _word(plan: Plan, step: PlannedStep, text: str) -> str:
    parts = parse_template(text)
    if all(isinstance(p, str) for p in parts):
        return shlex.quote("".join(str(p) for p in parts))
    quoted = "".join(
        re.sub(r'([\\"$`])', r"\\\1", p) if isinstance(p, str) else _shell_ref(plan, step, p) for p in parts
    )
    return quoted if re.fullmatch(r"[\w.,:/-]+", quoted) else f'"{quoted}"'


def _shell_ref(plan: Plan, step: PlannedStep, ref: object) -> str:
    assert isinstance(ref, Ref)
    match ref.path:
        case ("run", "dir"):
            return "$RUN"
        case ("run", "inside"):
            return "$INSIDE"
        case ("run", "id"):
            return "1"
        case ("run", "name"):
            return plan.name
        case ("here", "output"):
            return f"$RUN/steps/{step.name}/output"
        case ("here", "dir"):
            return f"$RUN/steps/{step.name}"
        case ("here", "devices"):
            first = sum(s.npus for s in _living_services(plan, step))
            return ",".join(str(first + i) for i in range(step.npus))
        case ("here", "port", name):
            return str(_port(plan, step, name))
    return f"${{{_variable(ref)}}}"


def _living_services(plan: Plan, step: PlannedStep) -> list[PlannedStep]:
    """The services that hold their devices while this step runs."""
    before = plan.steps[: plan.steps.index(step)]
    return [s for s in before if s.service and (s.keep or step.name in plan.consumers(s.name))]


def _port(plan: Plan, step: PlannedStep, name: str) -> int:
    written = step.ports.get(name)
    if written is not None:
        return written
    services = [s.name for s in plan.steps if s.service]
    if name == "http":
        return _HTTP + services.index(step.name)
    return _MASTER if name == "master" else _EXTRA


def _step_refs(step: PlannedStep) -> list[Ref]:
    texts = [t for c in step.commands for t in (*c.argv, *c.env.values())]
    texts += [*step.env.values(), *step.files.values()]
    found = [p for t in texts for p in parse_template(t) if isinstance(p, Ref) and p.path[0] == "steps"]
    return list({r.path: r for r in found}.values())


def _variable(ref: Ref) -> str:
    return re.sub(r"\W", "_", "_".join(ref.path[1:])).upper()


def _answer(plan: Plan, ref: Ref) -> str:
    """How a shell finds another step's output."""
    _, name, output = ref.path
    step = plan.step(name)
    at = step.outputs[output].at
    match step.outputs[output].find:
        case "endpoint":
            return f"http://127.0.0.1:{_port(plan, step, 'http')}"
        case "host":
            return "127.0.0.1"
        case "port":
            return str(_port(plan, step, "http"))
    folder = _word(plan, step, at)
    match step.outputs[output].find:
        case "checkpoint":
            return f"$(ls -d {folder}/checkpoint-* | grep -v -- -merged | sort -V | tail -n 1)"
        case "best_checkpoint":
            best = """grep -h -o '"best_model_checkpoint": *"[^"]*"'"""
            return f"$({best} {folder}/checkpoint-*/trainer_state.json | tail -n 1 | cut -d'\"' -f4)"
        case "json":
            key = step.outputs[output].key
            return f"$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[\"{key}\"])' {folder})"
    return folder
