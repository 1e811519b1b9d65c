"""Every example job compiles, and what it compiles to is committed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml

from runner.core.job import read_job
from runner.core.plan import PlannedStep
from runner.errors import SpecError

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from golden.rewrite import HERE, JOBS, SETS, job_names, plan_of, rendered  # noqa: E402

SCENARIOS = 30


@cache
def editor() -> jsonschema.Draft202012Validator:
    schema = json.loads((JOBS / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", job_names())
def test_golden_plan_is_what_the_job_compiles_to(name: str) -> None:
    for file, text in rendered(name).items():
        assert (HERE / file).read_text(encoding="utf-8") == text, (
            f"{file}: read the change, then `make golden`"
        )


@pytest.mark.parametrize("name", job_names())
def test_same_job_gives_the_same_bytes(name: str) -> None:
    assert rendered(name) == rendered(name)


@pytest.mark.parametrize("name", job_names())
def test_plan_is_a_shell_script(name: str) -> None:
    subprocess.run(["bash", "-n", HERE / f"{name}.sh"], check=True)


@pytest.mark.parametrize("name", job_names())
def test_editor_schema_accepts_the_job(name: str) -> None:
    text = (JOBS / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=schema.json\n")
    editor().validate(yaml.safe_load(text))


@pytest.mark.parametrize("name", job_names())
def test_job_begins_with_what_it_shows(name: str) -> None:
    _, *lines = (JOBS / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    about = [line for line in lines[: lines.index(f"name: {name}")] if line.startswith("# ")]
    assert 1 <= len([line for line in about if not line.startswith("#   runner submit ")]) <= 5
    npu = plan_of(name).generation != "cpu"
    assert ("not run on hardware." in about[-1]) == npu, "only what was run may be said to run"


def test_editor_schema_rejects_an_unknown_key() -> None:
    job = {"name": "x", "steps": [{"name": "a", "kind": "command", "comand": ["true"]}]}
    with pytest.raises(jsonschema.ValidationError):
        editor().validate(job)


def test_committed_schema_is_the_generated_one() -> None:
    assert (JOBS / "schema.json").read_text(encoding="utf-8") == cli("schema"), "`make schema` writes it anew"


def test_command_line_finds_nothing_to_say_and_prints_the_golden_plan() -> None:
    files = [f"jobs/{name}.yaml" for name in job_names() if name not in SETS]
    assert cli("check", *files) == f"{', '.join(files)}: ok\n"
    for name in ("quickstart-cpu", "grpo-rollout"):
        for file, options in ((f"{name}.sh", ()), (f"{name}.json", ("--json",))):
            assert cli("plan", f"jobs/{name}.yaml", *options) == (HERE / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(SETS))
def test_only_what_the_user_must_give_is_missing(name: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_job((JOBS / f"{name}.yaml").read_bytes(), f"{name}.yaml", [])
    assert {f.message for f in caught.value.findings} == {
        f"the param '{given.partition('=')[0]}' must be given" for given in SETS[name]
    }


def test_no_golden_without_a_job() -> None:
    assert {p.stem for p in HERE.glob("*.json")} == set(job_names())
    assert set(SETS) <= set(job_names())
    assert len(job_names()) >= SCENARIOS


def cli(*args: str) -> str:
    """What `runner` prints, with no site file and nothing in its home."""
    env = {**os.environ, "RUNNER_HOME": os.devnull, "RUNNER_SITE": os.devnull}
    argv = [sys.executable, "-m", "runner.cli.main", *args]
    return subprocess.run(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout


def steps() -> list[tuple[str, PlannedStep]]:
    return [(name, step) for name in job_names() for step in plan_of(name).steps]


def test_processes_and_devices_always_agree() -> None:
    spread = 0
    for name, step in steps():
        where = f"{name}.{step.name}"
        if step.npus:
            assert step.env["ASCEND_RT_VISIBLE_DEVICES"] == "${{ here.devices }}", where
        if "NPROC_PER_NODE" in step.env and step.npus:
            assert int(step.env["NPROC_PER_NODE"]) == step.npus, where
            assert step.env["MASTER_PORT"] == "${{ here.port.master }}", where
            spread += 1
    assert spread > 10


def test_megatron_steps_import_the_tree_that_is_named() -> None:
    named = [step.env for _, step in steps() if "MEGATRON_LM_PATH" in step.env]
    assert len(named) >= 2
    assert all(env["MEGATRON_LM_PATH"] in env["PYTHONPATH"].split(":") for env in named)


def test_everything_added_has_a_reason() -> None:
    for name, step in steps():
        written = (JOBS / f"{name}.yaml").read_text(encoding="utf-8")
        reasons = " ".join(note.what for note in step.notes)
        for command in step.commands:
            if command.argv[0] in ("swift", "megatron"):
                flags = [t.partition("=")[0] for t in command.argv if t.startswith("--")]
                unsaid = [f for f in flags if f"{f[2:]}:" not in written and f not in reasons]
                assert unsaid == [], f"{name}.{step.name}"
