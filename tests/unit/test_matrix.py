"""A job's matrix: one run for each combination."""

from __future__ import annotations

from jobs import findings_of, said
from runner.cli.jobfile import Choices, load_jobs
from runner.core.matrix import MOST_RUNS, points
from runner.core.yamltext import read_yaml

HEAD = "name: j\nkind: command\ncommand: [echo, '${{ params.lr }}', '${{ params.seed }}']\n"
PARAMS = HEAD + "params: {lr: 1e-4, seed: 1, data: null}\n"


def test_every_combination_in_the_order_written() -> None:
    doc = read_yaml((PARAMS + "matrix: {lr: [1e-4, 5e-5], seed: [1, 2]}\n").encode(), "j")
    assert [tuple(p.values()) for p in points(doc)] == [(1e-4, 1), (1e-4, 2), (5e-5, 1), (5e-5, 2)]
    assert points(doc, frozenset({"lr"})) == [{"seed": 1}, {"seed": 2}]


def test_each_point_has_a_plan_of_its_own(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "job.yaml"
    file.write_text(PARAMS + "matrix: {seed: [1, 2]}\n")
    argvs = [j.plan.steps[0].commands[0].argv for j in load_jobs(str(file), Choices(["lr=1e-3"]))]
    assert argvs == [("echo", "0.001", "1"), ("echo", "0.001", "2")]


def test_a_wrong_matrix_is_said_with_its_place() -> None:
    assert said(PARAMS + "matrix: {lrr: [1.0], seed: [a], lr: 3}\n") == [
        "5:10: the job has no param 'lrr' - did you mean 'lr'?",
        "5:29: 'a' is not of the type of the param's default, 1",
        "5:37: must be a list of values, got 3",
    ]
    assert said(PARAMS + "matrix: {seed: ['${{ params.lr }}']}\n")[0].endswith(
        "a matrix cannot hold an expression"
    )
    many = list(range(MOST_RUNS + 1))
    assert f"makes {MOST_RUNS + 1} runs" in findings_of(PARAMS + f"matrix: {{seed: {many}}}\n")[0].message


def test_a_param_without_a_default_may_come_from_the_matrix() -> None:
    job = HEAD.replace("seed", "data") + "params: {lr: 1.0, data: null}\nmatrix: {data: [a, b]}\n"
    assert said(job, "data=a") == []
