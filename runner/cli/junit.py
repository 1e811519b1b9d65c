"""A JUnit report of runs, as CI servers read it: a testsuite for each run, a testcase for each step."""

from __future__ import annotations

import re
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import UnreachableError, UsageError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from runner.store.db import Run, Step, Store

_LINES = 50
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # w3.org/TR/xml, 2.2
_COLOR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def writable(value: str) -> Path:
    """The file of `--junit`; UsageError, before anything starts, when it cannot be written."""
    path = Path(value)
    if path.is_dir():
        raise UsageError(f"cannot write the JUnit report {value}: it is a folder")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as e:
        hint = "make its folder first" if isinstance(e, FileNotFoundError) else None
        raise UsageError(f"cannot write the JUnit report {value}: {e.strerror}", hint=hint) from e


def write_junit(store: Store, runs: Sequence[int], path: Path) -> None:
    """Write how these runs and their steps ended, whatever the end was; what is open counts as skipped."""
    from xml.etree.ElementTree import Element, indent, tostring

    from runner.files import write_atomic

    whole = Element("testsuites", name="runner")
    for i, run in enumerate(runs):
        whole.append(_suite(store, store.run(run), i))
    for name in ("tests", "failures", "errors"):
        whole.set(name, str(sum(int(suite.get(name, "0")) for suite in whole)))
    whole.set("time", _seconds(sum(float(suite.get("time", "0")) for suite in whole)))
    indent(whole)
    text = tostring(whole, encoding="unicode")
    try:
        write_atomic(path, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n', durable=False)
    except UnreachableError as e:
        runs_text = " ".join(map(str, runs))
        raise UnreachableError(
            e.message, hint=f"`runner wait --junit FILE {runs_text}` writes it again"
        ) from e


def _suite(store: Store, run: Run, number: int) -> Element:
    from xml.etree.ElementTree import Element, SubElement

    steps = store.steps(run.id)
    cases = [_case(store, run, step) for step in steps]
    suite = Element("testsuite", name=_clean(run.name), id=str(number), tests=str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    started = min((s.started for s in steps if s.started), default=None)
    suite.set("time", _seconds((run.ended or time.time()) - started if started else 0))
    suite.set("timestamp", time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(started or run.created)))
    suite.set("hostname", _clean(socket.gethostname()))
    properties = SubElement(suite, "properties")
    told = {"run": run.id, "state": run.state, "folder": store.folder(run.id).path, "group": run.grp}
    for name, value in {**told, **{f"point.{k}": v for k, v in run.point.items()}}.items():
        if value is not None:
            SubElement(properties, "property", name=_clean(name), value=_clean(str(value)))
    suite.extend(cases)
    return suite


def _case(store: Store, run: Run, step: Step) -> Element:
    from xml.etree.ElementTree import Element, SubElement

    took = (step.ended or time.time()) - step.started if step.started else 0
    case = Element("testcase", classname=_clean(run.name), name=_clean(step.name), time=_seconds(took))
    tag = _tag(store, step)
    if tag is None:
        return case
    said = _clean(step.message or step.why or "")
    verdict = SubElement(case, tag, type=step.reason or step.state, message=said or step.reason or step.state)
    facts = [("reason", step.reason), ("message", said), ("exit code", step.code), ("signal", step.signal)]
    verdict.text = "\n".join(f"{name}: {value}" for name, value in facts if value not in (None, ""))
    if log := _log(store, step):
        SubElement(case, "system-out").text = log
    return case


def _tag(store: Store, step: Step) -> str | None:
    """What the step is in the report; None when it passed, as a READY service has."""
    from runner.cli.outcome import is_ready

    match step.state:
        case "SUCCEEDED":
            return None
        case "FAILED":
            return "failure"
        case "LOST":
            return "error"
    return None if is_ready(store, step) else "skipped"


def _log(store: Store, step: Step) -> str:
    """The end of the log of its last attempt."""
    from runner.cli.tail import last_lines

    attempts = store.attempts(step.run, step.name)
    path = store.folder(step.run).attempt(step.name, attempts[-1].n) / "log.txt" if attempts else None
    return _clean("\n".join(last_lines(path, _LINES))) if path else ""


def _clean(text: str) -> str:
    """The text as XML 1.0 can hold it: without colours, and with a mark for each other control character."""
    return _NOT_XML.sub("\ufffd", _COLOR.sub("", text))


def _seconds(value: float) -> str:
    return f"{max(0.0, value):.3f}"
