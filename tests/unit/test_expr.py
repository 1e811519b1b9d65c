"""Expressions: what they become while compiling, and what only while running."""

from __future__ import annotations

import pytest

from runner.core.expr import ExpressionError, Ref, evaluate, refs, resolve, unknown_name
from runner.core.params import apply_sets, missing_params, params_findings
from runner.core.yamltext import format_finding, read_yaml
from runner.errors import UsageError

PARAMS = {
    "model": "qwen",
    "rank": 8,
    "lr": 1e-4,
    "on": True,
    "data": ["a", "b"],
    "opts": {"k": 1},
    "none": None,
}


def late(path: tuple[str, ...]) -> str | None:
    return None if path[0] == "steps" else unknown_name(path[:1], ["params", "env", "steps"])


def run(text: str) -> tuple[object, list[str]]:
    doc = read_yaml(text.encode(), "job.yaml")
    value, found = evaluate(doc, doc.value, (), {"params": PARAMS, "env": {"HOME": "/h"}}, late)
    return value, [format_finding(f) for f in found]


def fill(text: str) -> object:
    value, found = run(f"a: '{text}'\n")
    assert found == []
    assert isinstance(value, dict)
    return value["a"]


def error(text: str) -> str:
    _, found = run(f"a: '{text}'\n")
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${{ params.model }}", "qwen"),
        ("${{params.rank}}", 8),
        ("${{ params.lr }}", 1e-4),
        ("${{ params.on }}", True),
        ("${{ params.data }}", ["a", "b"]),
        ("${{ params.opts }}", {"k": 1}),
        ("${{ params.opts.k }}", 1),
        ("${{ env.HOME }}/x", "/h/x"),
        ("r${{ params.rank }}-${{ params.on }}-${{ params.lr }}", "r8-true-0.0001"),
        ("${{  steps.train.checkpoint }}", "${{ steps.train.checkpoint }}"),
        ("${{ params.model }}:${{steps.x.y}}", "qwen:${{ steps.x.y }}"),
        ("${{ params.none }}", "${{ params.none }}"),
        ("cost: $5 {{ x }}", "cost: $5 {{ x }}"),
        ("$${{ params.model }}", "$${{ params.model }}"),
    ],
)
def test_a_lone_expression_keeps_its_type_and_text_takes_words(text: str, value: object) -> None:
    got = fill(text)
    assert (got, type(got)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "${{ params.modle }}",
            "unknown name 'params.modle' - did you mean 'params.model'? (params has: model,",
        ),
        ("${{ parms.model }}", "unknown name 'parms' - did you mean 'params'?"),
        ("x ${{ params.data }}", "params.data is a list, which cannot stand inside text"),
        ("${{ params.model.x }}", "'params.model' is 'qwen' and has no 'x'"),
        ("${{ params }}", "'params' alone is no value"),
        ("${{ }}", "names nothing"),
        ("${{ params.rank + 1 }}", "'params.rank + 1' is no name"),
        ("${{ params.rank", "'${{' is not closed"),
        ("${{ a ${{ params.model }}", "'${{' is not closed"),
    ],
)
def test_what_is_wrong_with_an_expression(text: str, says: str) -> None:
    assert says in error(text)


def test_the_caret_stands_under_the_name_inside_the_text() -> None:
    assert run('a: 1\nb: ["x", "pre ${{ params.modle }} post"]\n')[1][0].splitlines() == [
        "job.yaml:2:19: unknown name 'params.modle' - did you mean 'params.model'? "
        "(params has: model, rank, lr, on, data, opts, none)",
        "  1 | a: 1",
        '  2 | b: ["x", "pre ${{ params.modle }} post"]',
        "    |                   ^^^^^^^^^^^^",
    ]


def test_all_errors_at_once_and_keys_hold_no_expression() -> None:
    _, found = run('a: "${{ x.y }}"\n"${{ params.model }}": 1\nb: ["${{ params.q }}"]\n')
    assert [f.split(": ", 1)[0] for f in found] == ["job.yaml:2:1", "job.yaml:1:9", "job.yaml:3:10"]


def test_text_that_would_make_an_expression_by_accident_is_refused() -> None:
    doc = read_yaml(b'a: "$${{ x"\nb: "$${{ params.brace }}"\nc: "$${{"\n', "f")
    assert evaluate(doc, doc.value, (), {"params": {"brace": "{{ x }}"}}, late)[1] == []
    doc = read_yaml(b'a: "${{ params.dollar }}${{ steps.x.y }}"\n', "f")
    _, found = evaluate(doc, doc.value, (), {"params": {"dollar": "$"}}, late)
    assert "would read as another" in found[0].message


def test_expressions_cannot_expand_without_end() -> None:
    doc = read_yaml(("a: [" + '"${{ params.big }}",' * 500 + "]").encode(), "f")
    _, found = evaluate(doc, doc.value, (), {"params": {"big": ["x" * 10_000] * 10}}, late)
    assert "expand to more than" in found[0].message


def test_resolve_fills_in_what_was_left_and_takes_the_escape_away() -> None:
    given = {"a": ["${{ steps.t.out }}", "x-${{ steps.t.n }}", "$${{ raw }}", 3], "b": "${{ steps.t.list }}"}
    values = {"out": "/run/${{ not again }}", "n": 2, "list": [1]}
    assert resolve(given, lambda path: values[path[-1]]) == {
        "a": ["/run/${{ not again }}", "x-2", "${{ raw }}", 3],
        "b": [1],
    }


@pytest.mark.parametrize("text", ["${{ steps.t.gone }}", "x ${{ steps.t.gone }}", "x ${{ steps.t.list }}"])
def test_resolve_names_what_has_no_value(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"steps\.t\.(gone|list)"):
        resolve([text], lambda path: {"list": [1]}[path[-1]])


def test_refs_in_document_order() -> None:
    value = {"a": "${{ steps.x.y }} ${{ run.id }}", "b": [{"c": "${{ params.m }}"}], "d": "$${{ no.thing }}"}
    assert refs(value) == [
        (Ref(("steps", "x", "y")), ("a",)),
        (Ref(("run", "id")), ("a",)),
        (Ref(("params", "m")), ("b", 0, "c")),
    ]


def test_params_hold_no_expressions_and_have_plain_names() -> None:
    doc = read_yaml(b'params: {a: "x ${{ params.b }}", "b c": 1, d: ["$${{ fine"], e: ["${{"]}\n', "f")
    assert [(f.code, f.path) for f in params_findings(doc)] == [
        ("param-name", 'params["b c"]'),
        ("expression", "params.a"),
        ("expression", "params.e[0]"),
    ]


def test_a_null_param_must_be_given_only_where_it_is_used() -> None:
    doc = read_yaml(b'params: {m: null, n: null}\nx: "${{ params.m }}"\ny: ["a ${{ params.m }}"]\n', "f")
    assert [format_finding(f).splitlines()[0] for f in missing_params(doc, {"m": None, "n": None})] == [
        "f:2:9: the param 'm' must be given"
    ]
    assert missing_params(doc, {"m": None})[0].hint == "add --set m=..., or give it a value under params"
    assert missing_params(doc, {"m": 1, "n": None}) == []


def test_sets_replace_params_by_yaml_values_of_the_same_type() -> None:
    before = {"s": "x", "i": 1, "f": 1.5, "b": False, "l": [1], "m": {"k": 1, "j": 2}, "n": None}
    after = apply_sets(before, ["s=Qwen/Q:3=4", "i=0x10", "f=2", "b=true", "l=[a, b]", "m.k=5", "n=1e-4"])
    assert after == {
        "s": "Qwen/Q:3=4",
        "i": 16,
        "f": 2.0,
        "b": True,
        "l": ["a", "b"],
        "m": {"k": 5, "j": 2},
        "n": 1e-4,
    }
    assert isinstance(after["f"], float)
    assert before["i"] == 1


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("modle=x", "unknown param 'modle' - did you mean 'model'?"),
        ("model", "has no value"),
        ("=x", "has no value"),
        ("model=3", "--set model must be text, got 3"),
        ("model=", "must be text, got null"),
        ("rank=1.5", "must be a whole number, got 1.5"),
        ("rank=true", "must be a whole number, got true"),
        ("on=yes", "must be true or false, got 'yes'"),
        ("data=a", "must be a list, got 'a'"),
        ("model.x=1", "'model' is 'qwen', no mapping"),
        ("model=[a", "cannot read --set model=[a"),
        ("model='${{ params.rank }}'", "cannot hold an expression"),
        ("none=a: b: c", "cannot read"),
        ("none=\x00", "control character"),
        ("opts.q=1", "unknown param 'opts.q'"),
    ],
)
def test_sets_that_do_not_fit(assignment: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        apply_sets(PARAMS, [assignment])
    assert says in caught.value.message
