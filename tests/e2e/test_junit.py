"""The JUnit report is what CI servers read, whatever the runs and their logs are."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cli import Cli
from junitparser import JUnitXml

ODD = r"""
name: odd
steps:
  - {name: fine, kind: command, command: ['true']}
  - name: fails
    kind: command
    script: |
      seq 100
      printf 'a\rb\r\nbell \007 ]]> </system-out> \033[31mred\033[0m \377\376 中文\n'
      exit 7
  - {name: never, kind: command, command: ['true']}
"""
GOOD = "name: good\nkind: command\ncommand: ['true']\n"


def report(path: Path) -> ET.Element:
    """The report, as another reader of such files counts it too."""
    root, other = ET.parse(path).getroot(), JUnitXml.fromfile(str(path))
    counted = (other.tests, other.failures, other.errors, sum(len(list(suite)) for suite in other))
    assert [str(n) for n in counted] == [root.get(k) for k in ("tests", "failures", "errors", "tests")]
    return root


def case(root: ET.Element, name: str) -> ET.Element:
    found = root.find(f".//testcase[@name='{name}']")
    assert found is not None
    return found


def test_every_end_has_its_element_and_any_log_can_be_read(cli: Cli) -> None:
    out = cli.work / "out.xml"
    cli("submit", "--wait", "--junit", out, cli.job(ODD), code=7)
    root = report(out)
    assert [root.get(k) for k in ("tests", "failures", "errors")] == ["3", "1", "0"]
    assert list(case(root, "fine")) == []
    assert case(root, "fine").get("classname") == "odd"
    failure = case(root, "fails").find("failure")
    assert failure is not None
    assert failure.get("type") == "exit_code"
    assert "exit code: 7" in str(failure.text)
    log = str(case(root, "fails").findtext("system-out")).splitlines()
    assert len(log) == 50
    assert "b" in log
    assert "bell \ufffd ]]> </system-out> red \ufffd\ufffd 中文" in log
    skipped = case(root, "never").find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "step 'fails' did not succeed"
    told = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert told == {"run": "1", "state": "FAILED", "folder": str(cli.folder())}


def test_wait_reports_a_group_with_its_points(cli: Cli) -> None:
    matrix = "name: m\nparams: {x: 1}\nmatrix: {x: [1, 2]}\nkind: command\nscript: sleep 0.3\n"
    cli("submit", cli.job(matrix))
    cli("wait", "--group", "m", "--junit", "g.xml")
    suites = list(report(cli.work / "g.xml"))
    told = [{p.get("name"): p.get("value") for p in s.iter("property")} for s in suites]
    assert [(t["run"], t["group"], t["point.x"]) for t in told] == [("1", "m.1", "1"), ("2", "m.1", "2")]
    assert all(0.3 <= float(str(s.get("time"))) < 30 for s in suites)


def test_a_lost_step_is_an_error_and_a_stopped_one_is_skipped(cli: Cli) -> None:
    job = cli.job("name: long\nkind: command\ncommand: [sleep, '60']\n")
    cli("submit", job)
    until = time.monotonic() + 20
    while not cli.kill("runner/entry"):
        assert time.monotonic() < until
        time.sleep(0.05)
    cli("wait", "1", "--junit", "lost.xml", code=5)
    assert case(report(cli.work / "lost.xml"), "long").find("error") is not None
    cli("submit", job)
    cli("stop", "2")
    cli("wait", "2", "--junit", "stopped.xml", code=130)
    assert case(report(cli.work / "stopped.xml"), "long").find("skipped") is not None


@pytest.mark.parametrize("file", ["no/such/folder/out.xml", "/proc/out.xml", ".", "job.yaml/out.xml"])
def test_a_report_that_cannot_be_written_is_said_before_the_submit(cli: Cli, file: str) -> None:
    done = cli("submit", "--wait", "--junit", file, cli.job(GOOD), code=2)
    assert f"cannot write the JUnit report {file}: " in done.stderr
    assert cli.json("ps", "--all")["runs"] == []


def test_a_report_needs_somebody_who_waits(cli: Cli) -> None:
    for how in ("--detach", "--hold"):
        assert "--junit needs" in cli("submit", how, "--junit", "out.xml", cli.job(GOOD), code=2).stderr
    assert cli.json("ps", "--all")["runs"] == []
