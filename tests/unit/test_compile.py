"""What each kind runs, with which variables, and what later steps may read of it."""

from __future__ import annotations

import json

import pytest

from jobs import plan_of, step_of

PUSH = "kind: push\nsecrets: [TOKEN, {OTHER: {file: /run/x}}]\nargs: {adapters: /a, hub_model_id: a/b}\n"
TRAIN = "kind: sft\nargs: {model: a/b}\n"


def flags(argv: tuple[str, ...]) -> dict[str, str]:
    """--name value pairs."""
    return {t: argv[i + 1] for i, t in enumerate(argv[:-1]) if t.startswith("--")}


def test_argv_is_in_the_order_written() -> None:
    args = (
        "{model: a/b, packing: true, dataset: [x, 'y#5'], system: null, rope_scaling: {type: yarn}, seed: 3}"
    )
    argv = step_of(f"kind: sft\nargs: {args}\nextra_args: [--x, 1e-5]\n").commands[0].argv
    assert argv[:12] == (
        "swift", "sft", "--model", "a/b", "--packing", "true", "--dataset", "x", "y#5",
        "--rope_scaling", '{"type": "yarn"}', "--seed",
    )  # fmt: skip
    assert argv[-2:] == ("--x", "1e-05")


def test_training_is_given_one_folder_and_no_look_at_the_hub() -> None:
    argv = step_of(TRAIN).commands[0].argv
    have = flags(argv)
    assert have["--output_dir"] == "${{ here.output }}"
    assert have["--add_version"] == have["--check_model"] == "false"
    assert "--use_cpu" not in have
    assert "--enable_jit_checkpoint" not in have, "transformers 4.57 has no such argument"


def test_on_the_cpu_processes_are_one_training() -> None:
    step = step_of(f"resources: {{npus: 2}}\n{TRAIN}", stack="cpu")
    assert flags(step.commands[0].argv)["--use_cpu"] == "true"
    assert flags(step.commands[0].argv)["--enable_jit_checkpoint"] == "true"
    assert step.env == {"NPROC_PER_NODE": "2", "MASTER_PORT": "${{ here.port.master }}"}
    assert step.npus == 0


def test_what_the_spec_says_wins() -> None:
    step = step_of("kind: sft\nargs: {model: a/b, output_dir: /data/out, check_model: true}\n")
    have = flags(step.commands[0].argv)
    assert (have["--output_dir"], have["--check_model"]) == ("/data/out", "true")
    assert step.outputs["checkpoint"].at == "/data/out"
    assert not [n for n in step.notes if "output_dir" in n.what]


@pytest.mark.parametrize(("npus", "processes"), [(0, None), (1, None), (2, "2"), (16, "16")])
def test_one_process_per_device(npus: int, processes: str | None) -> None:
    step = step_of(f"resources: {{npus: {npus}}}\n{TRAIN}")
    assert step.env.get("NPROC_PER_NODE") == processes
    assert ("ASCEND_RT_VISIBLE_DEVICES" in step.env) == (npus > 0)
    assert ("MASTER_PORT" in step.env) == (processes is not None)


def test_only_training_spreads() -> None:
    text = """
resources: {npus: 4}
steps:
  - {name: train, kind: sft, args: {model: a/b}}
  - {name: merge, kind: merge, args: {adapters: "${{ steps.train.checkpoint }}"}}
  - {name: serve, kind: serve, args: {model: "${{ steps.merge.model }}"}, resources: {npus: 2}}
  - {name: ask, kind: probe, target: serve, request: {messages: []}}
"""
    assert [s.npus for s in plan_of(f"name: j\n{text}").steps] == [4, 1, 2, 0]


def test_merge_is_verified_unless_told_otherwise() -> None:
    merge = "kind: merge\nargs: {adapters: /a/checkpoint-1}\n"
    assert [c.name for c in step_of(merge).commands] == ["merge", "verify"]
    assert [c.name for c in step_of(merge + "verify: false\n").commands] == ["merge"]
    argv = step_of(merge + "tolerance: 0.5\n").commands[1].argv
    assert flags(argv)["--tolerance"] == "0.5"
    assert flags(argv)["--merged"] == flags(step_of(merge).commands[0].argv)["--output_dir"]


def test_service_has_a_leased_port_a_name_and_a_time_to_be_ready() -> None:
    step = step_of("steps: [{name: j, kind: serve, engine: vllm, args: {model: a/b}, timeout: 5m}]\n")
    have = flags(step.commands[0].argv)
    assert have["--port"] == "${{ here.port.http }}"
    assert (have["--host"], have["--infer_backend"], have["--served_model_name"]) == (
        "127.0.0.1",
        "vllm",
        "j",
    )
    assert step.ready is not None
    assert (step.ready.model, step.ready.timeout_s) == ("j", 300)
    assert step.ports == {"http": None}
    assert step_of("kind: serve\nargs: {model: a/b, port: 8000}\n").ports == {"http": 8000}


def test_vllm_itself_is_served_with_its_own_flags() -> None:
    argv = (
        step_of("kind: serve\nengine: vllm-serve\nargs: {model: a/b, tensor_parallel_size: 2}\n")
        .commands[0]
        .argv
    )
    assert argv[:5] == ("vllm", "serve", "a/b", "--tensor-parallel-size", "2")


def test_probe_asks_its_service_by_its_served_name() -> None:
    text = """
steps:
  - {name: s, kind: serve, args: {model: a/b, served_model_name: demo}}
  - {name: q, kind: probe, target: s, request: {messages: []}, expect: {contains: hi}}
"""
    step = step_of(text)
    request = json.loads(step.files["request.json"])
    assert request["body"]["model"] == "demo"
    assert request["url"] == "${{ steps.s.endpoint }}"
    assert request["expect"] == {"contains": "hi"}
    assert step.needs == ("s",)


def test_megatron_runs_under_torchrun_from_one_tree() -> None:
    env = "env: {MEGATRON_LM_PATH: /opt/m, PYTHONPATH: /mine}\n"
    step = step_of(f"resources: {{npus: 4}}\n{env}kind: megatron-sft\nargs: {{model: a/b}}\n")
    assert step.commands[0].argv[:2] == ("megatron", "sft")
    assert step.env["PYTHONPATH"] == "/opt/m:/mine"
    assert step.env["NPROC_PER_NODE"] == "4"
    assert step_of("kind: megatron-pt\nargs: {model: a/b}\n").env["NPROC_PER_NODE"] == "1"


def test_prompts_become_rows() -> None:
    step = step_of("kind: infer\nprompts: ['你好 \"x\"', b]\nargs: {model: a/b}\n")
    rows = [json.loads(line) for line in step.files["prompts.jsonl"].splitlines()]
    assert [r["messages"][0]["content"] for r in rows] == ['你好 "x"', "b"]
    assert flags(step.commands[0].argv)["--val_dataset"] == "${{ here.dir }}/prompts.jsonl"


def test_offline_is_said_to_every_ms_swift_step() -> None:
    assert plan_of(f"name: j\n{TRAIN}", offline=True).steps[0].env["HF_HUB_OFFLINE"] == "1"
    own = plan_of(f"name: j\nenv: {{HF_HUB_OFFLINE: '0'}}\n{TRAIN}", offline=True).steps[0]
    assert own.env["HF_HUB_OFFLINE"] == "0"


def test_push_keeps_its_secret_a_name() -> None:
    step = step_of(PUSH)
    assert step.secrets == ({"TOKEN": None}, {"OTHER": "/run/x"})
    assert flags(step.commands[0].argv)["--push_to_hub"] == "true"


def test_retry_and_resume_only_where_training_can() -> None:
    text = """
retry: {attempts: 3, resume: true, backoff: 2s}
steps:
  - {name: train, kind: sft, args: {model: a/b}}
  - {name: other, kind: command, command: ['true'], retry: {attempts: 1}}
"""
    train, other = plan_of(f"name: j\n{text}").steps
    assert (train.attempts, train.backoff_s, train.resume) == (3, 2.0, True)
    assert (other.attempts, other.resume) == (1, False)


def test_same_input_same_bytes() -> None:
    assert plan_of(f"name: j\n{TRAIN}").model_dump_json() == plan_of(f"name: j\n{TRAIN}").model_dump_json()
