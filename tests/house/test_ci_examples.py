"""The CI examples do what they say: every command exists, and each job's script runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from runner.cli.main import cli

ROOT = Path(__file__).parents[2]
CI = ROOT / "examples" / "ci"
GITHUB, GITLAB = CI / "github-actions.yml", CI / "gitlab-ci.yml"
DEFAULT = "jobs/quickstart-cpu.yaml"
GOOD = "name: cheap\nkind: command\ncommand: [echo, all is well]\n"
BAD = "name: cheap\nkind: command\nscript: echo it went wrong; exit 3\n"


@dataclass(frozen=True)
class Part:
    """Lines of shell, and when they run: on success, on failure, when cancelled, or always."""

    when: str
    script: str


@dataclass(frozen=True)
class CiJob:
    """A job of a CI file as far as a shell sees it."""

    env: dict[str, str]
    parts: list[Part]
    kept: list[str]


def whole(text: str) -> str:
    """The file with the part for NPUs in force."""
    return re.sub(r"^#(?=  |[a-z])", "", text, flags=re.M)


def github(text: str) -> dict[str, CiJob]:
    jobs: dict[str, Any] = yaml.safe_load(text)["jobs"]
    made = {}
    for name, job in jobs.items():
        whens = [str(s.get("if", "success()")).removesuffix("()") for s in job["steps"]]
        parts = [Part(w, s["run"]) for w, s in zip(whens, job["steps"], strict=True) if "run" in s]
        (kept,) = [s["with"]["path"] for s in job["steps"] if "upload-artifact" in s.get("uses", "")]
        made[name] = CiJob(job["env"], parts, kept.split())
    return made


def gitlab(text: str) -> dict[str, CiJob]:
    made = {}
    for name, job in yaml.safe_load(text).items():
        parts = [
            *(Part("success", s) for s in job["script"]),
            *(Part("always", s) for s in job["after_script"]),
        ]
        assert job["artifacts"]["reports"]["junit"] in job["artifacts"]["paths"]
        made[name] = CiJob(job["variables"], parts, job["artifacts"]["paths"])
    return made


def jobs(text: str, file: Path) -> dict[str, CiJob]:
    return github(text) if file == GITHUB else gitlab(text)


def parsed(words: list[str]) -> str:
    """The command that click finds in these words; UsageError when one of them is not known."""
    group: click.Command = cli
    context = group.make_context("runner", list(words))
    while isinstance(group, click.Group):
        name, command, words = group.resolve_command(context, words)
        assert command is not None
        context = command.make_context(name, list(words), parent=context)
        group = command
    return context.command_path


@pytest.mark.parametrize("file", [GITHUB, GITLAB], ids=lambda f: f.stem)
def test_every_command_exists(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # --junit looks at the folder
    found = jobs(whole(file.read_text(encoding="utf-8")), file)
    assert set(found) == {"cpu", "ascend"}
    for name, job in found.items():
        assert (ROOT / job.env["JOB"]).is_file()
        script = "\n".join(p.script for p in job.parts)
        used = {parsed(shlex.split(words)) for words in re.findall(r"\.venv/bin/runner ([^;|\n]*)", script)}
        assert {"runner submit", "runner logs"} <= used, name
        assert "--junit report.xml" in script
        assert "report.xml" in job.kept


def test_an_option_that_does_not_exist_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        parsed(["submit", "--no-such-option", "x.yaml"])


class Clone:
    """A folder that looks like a fresh clone on a CI machine."""

    def __init__(self, folder: Path) -> None:
        self.work, self.home = folder / "clone", folder / "user"
        for made in (self.work, self.home):
            made.mkdir()
        for name in ("Makefile", "pyproject.toml", "runner", "jobs", "Dockerfiles"):
            (self.work / name).symlink_to(ROOT / name)
        (self.work / ".venv").symlink_to(sys.prefix)

    def run(self, job: CiJob, text: str) -> tuple[int, str]:
        """Run the parts of the job as its CI would; the code of the first that failed, and all output."""
        (self.work / "cheap.yaml").write_text(text)
        given = {k: v.replace("$CI_PROJECT_DIR", str(self.work)) for k, v in job.env.items()}
        env = {k: v for k, v in os.environ.items() if not k.startswith(("RUNNER_", "XDG_"))}
        env |= {**given, "JOB": "cheap.yaml", "HOME": str(self.home), "CI": "true"}
        code, said = 0, ""
        for part in job.parts:
            if part.when in ("always", "failure" if code else "success"):
                env["CI_JOB_STATUS"] = "failed" if code else "success"
                script = part.script.replace("make setup", "make -n setup")  # it needs a network
                argv = ["bash", "-eo", "pipefail", "-c", script]
                done = subprocess.run(
                    argv, cwd=self.work, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, timeout=150, check=False,
                )  # fmt: skip
                code = code or done.returncode
                said += done.stdout
        self.rest(env)
        return code, said

    def rest(self, env: dict[str, str]) -> None:
        """Until the agent has gone."""
        lock = Path(env.get("RUNNER_HOME") or self.home / ".local/state/ascend-runner") / "agent.lock"
        until = time.monotonic() + 20
        held = ["flock", "--nonblock", str(lock), "true"]
        while lock.exists() and subprocess.run(held, check=False).returncode:
            assert time.monotonic() < until
            time.sleep(0.1)

    def kept(self, job: CiJob) -> dict[str, Path]:
        """The files that the CI keeps, each pattern with the one file that it finds."""
        found = {}
        for pattern in job.kept:
            above = self.home if pattern.startswith("~/") else self.work
            (found[pattern],) = above.glob(pattern.removeprefix("~/"))
        return found


@pytest.mark.parametrize("file", [GITHUB, GITLAB], ids=lambda f: f.stem)
def test_scripts_run_and_keep_what_they_say(file: Path, tmp_path: Path) -> None:
    job = jobs(file.read_text(encoding="utf-8"), file)["cpu"]
    assert job.env["JOB"] == DEFAULT
    clone = Clone(tmp_path)
    code, said = clone.run(job, GOOD)
    assert code == 0, said
    assert "all is well" in said
    report, manifest = clone.kept(job).values()
    assert ET.parse(report).getroot().get("failures") == "0"
    assert '"artifacts"' in manifest.read_text()


@pytest.mark.parametrize("file", [GITHUB, GITLAB], ids=lambda f: f.stem)
def test_a_failed_run_fails_the_job_and_shows_why(file: Path, tmp_path: Path) -> None:
    job = jobs(file.read_text(encoding="utf-8"), file)["cpu"]
    clone = Clone(tmp_path)
    code, said = clone.run(job, BAD)
    assert code == 3, said
    _, shown = said.split("exit code 3\n", 1)
    assert "it went wrong" in shown
    report, _ = clone.kept(job).values()
    assert ET.parse(report).getroot().get("failures") == "1"


@pytest.mark.parametrize("file", [GITHUB, GITLAB], ids=lambda f: f.stem)
def test_a_wrong_job_file_fails_without_waiting_for_a_run(file: Path, tmp_path: Path) -> None:
    job = jobs(file.read_text(encoding="utf-8"), file)["cpu"]
    begun = time.monotonic()
    code, said = Clone(tmp_path).run(job, GOOD + "comand: x\n")
    assert code == 2
    assert "did you mean 'command'?" in said
    assert time.monotonic() - begun < 60
