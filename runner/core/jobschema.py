"""The JSON schema of a job file: a list of steps, or one step at the top level."""

from __future__ import annotations

from typing import Any

from runner.core.job import JobSpec


def job_schema() -> dict[str, Any]:
    """What an editor needs; every value may also be a `${{ }}` expression."""
    schema = JobSpec.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs")
    whole = schema["properties"]
    steps = {n: d for n, d in definitions.items() if "kind" in d.get("properties", {})}
    single = []
    for name, step in steps.items():
        own = {k: v for k, v in step["properties"].items() if k not in whole}
        single.append({
            "title": name,
            "properties": {**{k: v for k, v in whole.items() if k != "steps"}, **own},
            "required": ["name", *[r for r in step.get("required", []) if r != "name"]],
            "additionalProperties": False,
        })  # fmt: skip
    for definition in definitions.values():
        _allow_expressions(definition)
    for one in single:
        _allow_expressions(one)
    _allow_expressions(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ascend Runner job",
        "oneOf": [{k: v for k, v in schema.items() if k != "description"}, *single],
        "$defs": definitions,
    }


def _allow_expressions(schema: dict[str, Any]) -> None:
    expression = {"type": "string", "pattern": r"\$\{\{"}
    for name, value in schema.get("properties", {}).items():
        if name in ("kind", "steps", "params") or value.get("type") == "string":
            continue
        described = {k: value[k] for k in ("description", "title") if k in value}
        rest = {k: v for k, v in value.items() if k not in described}
        schema["properties"][name] = {**described, "anyOf": [rest, expression]}
