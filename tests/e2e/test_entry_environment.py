"""What a command finds in its environment: variables, sourced files, secrets, PATH."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attempt import Begin


def test_environment(both: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONE", "inherited")
    monkeypatch.setenv("LOCAL_RANK", "3")
    setup = tmp_path / "set env.sh"
    setup.write_text('echo noise; export CANN=there LIBS="/cann:$LIBS" LEVEL=12 FOUND="$(tool)$NOT_SET"\n')
    optional = tmp_path / "optional.sh"
    optional.write_text("export OPTIONAL=1\n")
    attempt = both(
        'echo "$CANN|$LIBS|$OWN|$LEVEL|${GONE-none}|$OPTIONAL|$FOUND|${LOCAL_RANK-none}"; tool',
        own={"OWN": "值 with 'quotes'"},
        env={"LIBS": "/mine", "LEVEL": "1", "GONE": None},
        source=[str(setup)],
        source_optional=[str(tmp_path / "no.sh"), str(optional)],
        path_prepend=[str(tool(tmp_path))],
    )
    assert attempt.end()["code"] == 0
    line = next(s for s in attempt.said() if s.startswith("there|"))
    assert line == "there|/cann:/mine|值 with 'quotes'|1|none|1|the tool|none"
    assert attempt.said()[-1] == "the tool"


def tool(folder: Path) -> Path:
    program = folder / "my bin" / "tool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho the tool\n")
    program.chmod(0o755)
    return program.parent


def test_a_file_to_source_that_is_missing_is_said(both: Begin) -> None:
    attempt = both("true", source=["/no/set_env.sh"])
    assert attempt.end()["reason"] == "entry_error"
    assert "/no/set_env.sh" in attempt.log()


def test_secrets_are_given_and_their_file_removed(begin: Begin, tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_text(json.dumps({"TOKEN": "s3cret"}))
    attempt = begin("[ ${#TOKEN} = 6 ]", secrets=str(file))
    assert attempt.end()["code"] == 0
    assert not file.exists()
    assert all(b"s3cret" not in p.read_bytes() for p in attempt.folder.iterdir())


@pytest.mark.parametrize("text", ["{", '["s3cret"]', '{"TOKEN": ["s3cret"]}', '{"TOKEN": "s3cret\\u0000"}'])
def test_unusable_secrets_are_said_without_their_value(begin: Begin, tmp_path: Path, text: str) -> None:
    file = tmp_path / "secret.json"
    file.write_text(text)
    attempt = begin("true", secrets=str(file))
    assert attempt.end()["reason"] == "entry_error"
    assert not file.exists()
    assert all(b"s3cret" not in p.read_bytes() for p in attempt.folder.iterdir())
