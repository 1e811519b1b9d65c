"""Model errors in words, at the place where a person wrote the mistake."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from runner.core.validate import in_order, validate
from runner.core.yamltext import finding, format_finding, read_yaml
from runner.errors import Finding


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Size(Enum):
    BIG = "big"
    SMALL = "small"


def _seconds(value: object) -> object:
    if not isinstance(value, int):
        raise ValueError("must be a duration such as 5m")
    return value


class Resources(Strict):
    npus: int = Field(default=0, ge=0, le=16)
    share: float = 1.0
    keep: bool = False
    memory: str | None = None


class Sft(Strict):
    kind: Literal["sft", "pt"]
    name: str | None = None
    args: dict[str, Any] = Field(default_factory=dict)


class Command(Strict):
    kind: Literal["command"]
    name: str | None = None
    command: list[str] | str
    mode: Literal["sft", "other"] = "other"


class Job(Strict):
    name: str = Field(pattern=r"^[a-z]+$")
    steps: list[Annotated[Sft | Command, Field(discriminator="kind")]] = Field(min_length=1)
    resources: Resources | None = None
    env: dict[Annotated[str, Field(pattern="^[A-Z]+$")], str | int] = Field(default_factory=dict)
    secrets: list[str | dict[str, Resources]] = Field(default_factory=list)
    engine: Literal["vllm", "transformers"] = "vllm"
    size: Annotated[Size, Field(strict=False)] = Size.BIG
    timeout: Annotated[int, BeforeValidator(_seconds)] = 1

    @field_validator("name")
    @classmethod
    def _own_rule(cls, value: str) -> str:
        if value == "bad":
            raise ValueError("the name 'bad' is taken")
        return value


GOOD = "name: a\nsteps: [{kind: sft}]\n"


def check(text: str) -> list[Finding]:
    return validate(read_yaml(text.encode(), "job.yaml"), Job)[1]


def only(text: str) -> str:
    found = check(text)
    assert len(found) == 1, [f.message for f in found]
    return f"{found[0].line}:{found[0].col}: {found[0].message}"


def test_a_good_document_is_a_model() -> None:
    job, found = validate(read_yaml(GOOD.encode(), "job.yaml"), Job)
    assert found == []
    assert job is not None
    assert job.steps[0].kind == "sft"


def test_the_house_example() -> None:
    text = "name: a\nsteps: [{kind: sft}]\n\n\n\nresources:\n  npu: 4\n"
    assert format_finding(check(text)[0]) == (
        "job.yaml:7:3: unknown key 'npu' - did you mean 'npus'?\n"
        "  6 | resources:\n"
        "  7 |   npu: 4\n"
        "    |   ^^^"
    )


def test_unknown_keys_come_first_then_by_place() -> None:
    text = (
        "name: 3\nsteps:\n- kind: sftt\n- {}\n- kind: command\n  comands: x\n"
        "resources: {npus: four}\nresource: 1\n"
    )
    assert [(f.code, f.line, f.path) for f in check(text)] == [
        ("unknown-key", 6, "steps[2].comands"),
        ("unknown-key", 8, "resource"),
        ("type", 1, "name"),
        ("unknown-kind", 3, "steps[0].kind"),
        ("missing-key", 4, "steps[1].kind"),
        ("missing-key", 5, "steps[2].command"),
        ("type", 7, "resources.npus"),
    ]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("resources: {npus: four}", "3:19: npus must be a whole number, got 'four'"),
        ("resources: {npus: 1.5}", "3:19: npus must be a whole number, got 1.5"),
        ("resources: {npus: true}", "3:19: npus must be a whole number, got true"),
        ("resources: {npus: }", "3:13: npus must be a whole number, got null"),
        ("resources: {npus: -1}", "3:19: npus must be at least 0, got -1"),
        ("resources: {npus: 17}", "3:19: npus must be at most 16, got 17"),
        ("resources: {share: x}", "3:20: share must be a number, got 'x'"),
        ("resources: {keep: yes}", "3:19: keep must be true or false, got 'yes'"),
        ("resources: {memory: 8}", "3:21: memory must be text, got 8"),
        ("resources: [1]", "3:12: resources must be a mapping (key: value), got a list"),
        ("env: [A]", "3:6: env must be a mapping (key: value), got a list"),
        ("env: {A: [1]}", "3:10: env.A must be text or a whole number, got a list"),
        ("env: {a: x}", "3:7: the key 'a' does not fit the pattern ^[A-Z]+$"),
        ("secrets: x", "3:10: secrets must be a list, got 'x'"),
        ("secrets: [3]", "3:11: secret 1 must be text or a mapping (key: value), got 3"),
        ("secrets: [{X: {npu: 1}}]", "3:16: unknown key 'npu' - did you mean 'npus'?"),
        ("secrets: [{X: 1}]", "3:15: X must be a mapping (key: value), got 1"),
        ("engine: vlm", "3:9: engine must be one of vllm, transformers, got 'vlm' - did you mean 'vllm'?"),
        ("engine: [vllm]", "3:9: engine must be one of vllm, transformers, got a list"),
        ("size: bigg", "3:7: size must be one of big, small, got 'bigg' - did you mean 'big'?"),
        ("timeout: 5x", "3:10: timeout must be a duration such as 5m, got '5x'"),
        ("npus: 4", "3:1: unknown key 'npus' - it belongs under 'resources'"),
    ],
)
def test_one_mistake_one_finding(more: str, says: str) -> None:
    assert only(GOOD + more + "\n") == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("steps: [{kind: sft}]", "1:1: the file needs 'name'"),
        ("name: a", "1:1: the file needs 'steps'"),
        ("name: bad\nsteps: [{kind: sft}]", "1:7: the name 'bad' is taken"),
        ("name: A1\nsteps: [{kind: sft}]", "1:7: name 'A1' does not fit the pattern ^[a-z]+$"),
        ("name: a\nsteps: []", "2:8: steps needs at least 1 item, has 0"),
        ("name: a\nsteps: [3]", "2:9: step 1 must be a mapping (key: value), got 3"),
        ("name: a\nsteps: [{kind: sftt}]", "2:16: unknown kind 'sftt' - did you mean 'sft'?"),
        ("name: a\nsteps: [{kind: 5}]", "2:16: kind must be text, got 5"),
        ("name: a\nsteps: [{kind: [sft]}]", "2:16: kind must be text, got a list"),
        ("name: a\nsteps:\n- {kind: sft}\n- name: train\n  args: {}", "4:3: step 2 ('train') needs 'kind'"),
        ("name: a\nsteps: [{kind: command}]", "2:9: step 1 needs 'command'"),
        ("name: a\nsteps: [{kind: command, command: 5}]", "2:34: command must be a list or text, got 5"),
        ("name: a\nsteps: [{kind: command, command: [5]}]", "2:35: command item 1 must be text, got 5"),
        (
            "name: a\nsteps: [{kind: command, command: x, mode: y}]",
            "2:43: mode must be one of sft, other, got 'y'",
        ),
    ],
)
def test_steps_and_names(text: str, says: str) -> None:
    assert only(text + "\n") == says


def test_kinds_are_listed_and_keys_too() -> None:
    assert check("name: a\nsteps: [{kind: sftt}, {}]\n")[0].hint == "the kinds are: sft, pt, command"
    assert check("name: a\nsteps: [{kind: sftt}, {}]\n")[1].hint == "the kinds are: sft, pt, command"
    lost = check("name: a\nsteps: [{kind: sft, lora_rank: 8}]\n")[0]
    assert lost.hint == "a flag of the program belongs under 'args'; the keys here are: kind, name, args"


def test_values_may_differ_from_the_document_as_long_as_they_have_its_shape() -> None:
    doc = read_yaml(b'name: a\nsteps: [{kind: sft}]\nresources: {npus: "${{ params.n }}"}\n', "job.yaml")
    value = {**doc.value, "resources": {"npus": "many"}}
    assert [(f.line, f.col, f.message) for f in validate(doc, Job, value)[1]] == [
        (3, 19, "npus must be a whole number, got 'many'")
    ]


def test_a_param_that_was_reported_already_is_not_reported_as_a_wrong_value() -> None:
    doc = read_yaml(b'name: a\nsteps: [{kind: sft}]\nresources: {npus: "${{ params.n }}"}\n', "job.yaml")
    assert validate(doc, Job) == (None, [])
    late = read_yaml(b'name: a\nsteps: [{kind: sft}]\nresources: {npus: "${{ steps.n.m }}"}\n', "job.yaml")
    wrong = validate(late, Job)[1]
    assert [f.message for f in wrong] == ["npus must be a whole number, got '${{ steps.n.m }}'"]
    known = finding(late, ("resources", "npus"), "name", "there is no step 'n'")
    assert in_order([*wrong, known]) == [known]


def test_hostile_documents_are_answered_in_time() -> None:
    text = "name: a\n" + "".join(f"key{i}: 1\n" for i in range(50_000))
    assert len(check(text)) == 100
    text = "name: a\nsteps:\n" + "- {kind: sft, nme: 1}\n" * 20_000
    assert len(check(text)) == 100
