"""A plan as commands to copy and paste into a shell, with a reason for all that the runner added."""

from __future__ import annotations

import re
import shlex

from runner.core.plan import Plan, PlannedStep
from runner.core.template import Ref, parse_template

_DEFAULT_PORTS = {"http": 8000, "master": 29500}


def shell_text(plan: Plan) -> str:
    """The whole plan; `RUN` is any folder, references become shell variables."""
    head = [
        f"# {plan.name}: stack {plan.stack}, generation {plan.generation}",
        'RUN="$PWD/runs/' + plan.name + '"',
    ]
    inside = "${{ run.inside }}"
    if any(inside in t for s in plan.steps for c in s.commands for t in c.argv):
        head.append("INSIDE=$(runner plan --inside)   # the scripts that ship with the runner")
    return "\n".join([*head, *(line for step in plan.steps for line in _step(step))]) + "\n"


def _step(step: PlannedStep) -> list[str]:
    waits = f", after {', '.join(step.needs)}" if step.needs else ""
    lines = ["", f"# {step.name} ({step.kind}){waits}"]
    lines += [f"#   {note.what}: {note.why}" for note in step.notes]
    for secret in step.secrets:
        for name, file in secret.items():
            lines.append(f"#   needs the secret {name}" + (f" from {file}" if file else ""))
    lines.append(f'mkdir -p "$RUN/{step.name}/output"')
    for ref in _step_refs(step):
        lines.append(f"{_variable(ref)}={_answer(ref)}")
    for name, text in step.files.items():
        mark = "EOF" if "${{" in text else "'EOF'"
        body = _expand(text) if "${{" in text else text
        lines.append(f'cat > "$RUN/{step.name}/{name}" <<{mark}\n{body.rstrip()}\nEOF')
    for command in step.commands:
        lines += _command(step, {**step.env, **command.env}, command.argv)
    if step.ready:
        port = _DEFAULT_PORTS["http"] if step.ports.get("http") is None else step.ports["http"]
        lines[-1] += " &"
        lines.append(
            f"until curl -sf http://127.0.0.1:{port}{step.ready.path or '/'} >/dev/null; do sleep 1; done"
        )
    return lines


def _command(step: PlannedStep, env: dict[str, str], argv: tuple[str, ...]) -> list[str]:
    """One word group a line, as the guide writes them: a flag with its values."""
    groups = [[f"{name}={_word(value, step)}"] for name, value in env.items()]
    head = [_word(t, step) for t in argv]
    flags = [i for i, t in enumerate(argv) if t.startswith("--")] or [len(argv)]
    groups.append(head[: flags[0]])
    for start, end in zip(flags, [*flags[1:], len(argv)], strict=True):
        groups.append(head[start:end])
    lines = [" ".join(g) for g in groups if g]
    return [
        line + " \\" if i < len(lines) - 1 else line
        for i, line in enumerate(["  " * (i > 0) + t for i, t in enumerate(lines)])
    ]


def _word(text: str, step: PlannedStep) -> str:
    parts = parse_template(text)
    if all(isinstance(p, str) for p in parts):
        return shlex.quote("".join(str(p) for p in parts))
    quoted = "".join(_escaped(p) if isinstance(p, str) else _shell_ref(p, step) for p in parts)
    return f'"{quoted}"' if not re.fullmatch(r"[\w.,:/-]+", quoted) else quoted


def _escaped(text: str) -> str:
    return re.sub(r'([\\"$`])', r"\\\1", text)


def _shell_ref(ref: object, step: PlannedStep) -> str:
    assert isinstance(ref, Ref)
    match ref.path:
        case ("run", "dir"):
            return "$RUN"
        case ("run", "inside"):
            return "$INSIDE"
        case ("here", "output"):
            return f"$RUN/{step.name}/output"
        case ("here", "dir"):
            return f"$RUN/{step.name}"
        case ("here", "devices"):
            return ",".join(map(str, range(step.npus)))
        case ("here", "port", name):
            return str(step.ports.get(name) or _DEFAULT_PORTS.get(name, 8100))
        case ("run", word):
            return {"id": "1", "name": '$(basename "$RUN")'}.get(word, word)
    return f"${_variable(ref)}"


def _expand(text: str) -> str:
    return "".join(
        _escaped(p) if isinstance(p, str) else f"${_variable(p)}"
        for p in parse_template(text)
        if isinstance(p, (str, Ref))
    )


def _step_refs(step: PlannedStep) -> list[Ref]:
    texts = (
        [t for c in step.commands for t in (*c.argv, *c.env.values())]
        + list(step.env.values())
        + list(step.files.values())
    )
    found = [p for t in texts for p in parse_template(t) if isinstance(p, Ref) and p.path[0] == "steps"]
    return list({r.path: r for r in found}.values())


def _variable(ref: Ref) -> str:
    return re.sub(r"\W", "_", "_".join(ref.path[1:])).upper()


def _answer(ref: Ref) -> str:
    _, step, output = ref.path
    match output:
        case "checkpoint":
            return f'$(ls -d "$RUN/{step}/output"/checkpoint-* | grep -v -- -merged | sort -V | tail -n 1)'
        case "best_checkpoint":
            states = f'"$RUN/{step}/output"/checkpoint-*/trainer_state.json'
            best = """grep -h -o '"best_model_checkpoint": *"[^"]*"' """
            return f"$({best}{states} | tail -n 1 | cut -d'\"' -f4)"
        case "endpoint":
            return "http://127.0.0.1:8000"
        case "host":
            return "127.0.0.1"
        case "port":
            return "8000"
        case "model":
            return f'"$RUN/{step}/output/model"'
        case "result":
            return f'"$RUN/{step}/output/result.jsonl"'
        case "logging":
            return f'"$RUN/{step}/output/logging.jsonl"'
    return f'"$RUN/{step}/output"'
