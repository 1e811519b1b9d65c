"""Completion in the real shells, from the script that `runner completion` prints."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from cli import Cli

from runner.data.stacks import stack_names

PATIENCE_S = 0.25
BASH = """
compopt() { :; }
eval "$(runner completion bash)"
complete -p runner > /dev/null
COMP_WORDS=(runner "$@"); COMP_CWORD=$#
_runner_completion runner
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
zmodload zsh/zpty
zpty z 'zsh -f -i'
zpty -w z 'PS1=; autoload -Uz compinit; compinit -u -D; source <(runner completion zsh); print RE""ADY'
zpty -r -m z line '*READY*' > /dev/null
zpty -n -w z "$1"$'\\t'
for i in {1..25}; do
  while zpty -r -t z out; do print -rn -- "$out"; done
  sleep 0.1
done
"""
JOB = """
name: {name}
steps:
  - {{name: {step}, kind: command, command: ['true']}}
  - {{name: test-it, kind: command, command: ['true']}}
"""


def shell(cli: Cli, program: str, script: str, *words: str) -> str:
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    env = {**cli.env, "PATH": f"{cli.program.parent}:/usr/bin:/bin", "HOME": str(cli.work), "TERM": "dumb"}
    argv = [program, *(["-f"] if program == "zsh" else []), "-c", script, program, *words]
    done = subprocess.run(argv, env=env, cwd=cli.work, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    return done.stdout


def bash(cli: Cli, *words: str) -> list[str]:
    return shell(cli, "bash", BASH, *words).split()


@pytest.fixture
def runs(cli: Cli) -> Cli:
    for name, step in (("alpha", "train-it"), ("beta", "serve-it"), ("alpha", "train-it")):
        cli("submit", "--wait", "--group", f"g-{name}", cli.job(JOB.format(name=name, step=step)))
    cli.wait_until_idle()
    return cli


def test_commands_and_options(cli: Cli) -> None:
    assert bash(cli, "st") == ["stop", "stack"]
    assert bash(cli, "stack", "in") == ["install"]
    assert "--no-wait" in bash(cli, "stop", "--")
    assert bash(cli, "submit", "--jun") == ["--junit"]
    assert bash(cli, "completion", "") == ["bash", "zsh", "fish"]
    assert bash(cli, "no-such-command", "x") == []


def test_runs_newest_first_then_their_names(runs: Cli) -> None:
    for command in ("show", "logs", "stop", "wait", "retry", "rm", "exec", "shell"):
        assert bash(runs, command, "") == ["3", "2", "1", "alpha", "beta"], command
    assert bash(runs, "stop", "3", "alpha", "") == ["2", "1", "beta"]
    assert bash(runs, "show", "b") == ["beta"]
    assert bash(runs, "submit", "--from", "") == ["3", "2", "1", "alpha", "beta"]


def test_steps_groups_and_stacks(runs: Cli) -> None:
    assert bash(runs, "logs", "1", "--step", "tr") == ["train-it"]
    assert bash(runs, "logs", "2", "--step", "") == ["serve-it", "test-it"]
    assert bash(runs, "logs", "beta", "--step", "s") == ["serve-it"]
    assert bash(runs, "logs", "--step", "t") == ["train-it", "test-it"]
    assert bash(runs, "exec", "--step", "te") == ["test-it"]
    assert bash(runs, "logs", "nobody", "--step", "") == []
    assert bash(runs, "ps", "--group", "") == ["g-alpha.3", "g-beta.2", "g-alpha.1"]
    assert bash(runs, "submit", "--stack", "") == stack_names()
    assert bash(runs, "stack", "path", "") == stack_names()


def test_job_files_are_left_to_the_shell(cli: Cli) -> None:
    said = BASH.replace("compopt() { :; }", "compopt() { printf '%s ' \"$@\" > asked; }")
    for words in (("submit", "jo"), ("check", "a.yaml", "jo"), ("plan", "jo")):
        assert shell(cli, "bash", said, *words).split() == []
        assert (cli.work / "asked").read_text() == "-o default "
        (cli.work / "asked").unlink()


def test_fish_and_zsh_show_what_a_run_is(runs: Cli) -> None:
    fish = 'runner completion fish | source; complete -C "runner $argv[2]"'
    assert shell(runs, "fish", fish, "show ").startswith("3\talpha SUCCEEDED ")
    shown = shell(runs, "zsh", ZSH, "runner show ")
    assert re.search(r"^2 +-- beta SUCCEEDED", shown, re.M), shown


def test_nothing_is_made_and_nothing_is_said_without_a_state(cli: Cli, tmp_path: Path) -> None:
    env = {**cli.env, "RUNNER_HOME": str(tmp_path / "none"), "_RUNNER_COMPLETE": "bash_complete"}
    for home in (tmp_path / "none", tmp_path / "broken"):
        env |= {"RUNNER_HOME": str(home), "COMP_WORDS": "runner show ", "COMP_CWORD": "2"}
        done = subprocess.run([cli.program], env=env, capture_output=True, text=True, check=True)
        assert (done.stdout.strip(), done.stderr) == ("", "")
        assert not (tmp_path / "none").exists()
        (tmp_path / "broken").mkdir(exist_ok=True)
        (tmp_path / "broken" / "state.db").write_bytes(b"no data base")
    assert [p.name for p in (tmp_path / "broken").iterdir()] == ["state.db"]


def test_completion_is_quick_and_starts_no_agent(runs: Cli) -> None:
    words = ("runner ", "runner show ", "runner logs --step ", "runner submit --stack ", "runner ps --")
    before = (runs.home / "agent.lock").stat().st_mtime_ns
    for line in words:
        cword = str(len(line.split()) - (not line.endswith(" ")))
        env = {**runs.env, "COMP_WORDS": line, "COMP_CWORD": cword, "_RUNNER_COMPLETE": "bash_complete"}
        took = []
        for _ in range(5):
            begun = time.perf_counter()
            done = subprocess.run([runs.program], env=env, capture_output=True, text=True, check=True)
            took.append(time.perf_counter() - begun)
        assert done.stdout.strip(), line
        assert min(took) <= PATIENCE_S, line
    assert (runs.home / "agent.lock").stat().st_mtime_ns == before
    assert runs.processes() == {}
