"""Text to values with places, and every way a text can be wrong."""

from __future__ import annotations

import math
import time

import pytest

from runner.core.yamltext import Document, finding, finding_json, format_finding, path_text, read_yaml
from runner.errors import Finding, SpecError


def read(text: str) -> Document:
    return read_yaml(text.encode(), "job.yaml")


def wrong(text: str | bytes, **limits: int) -> list[Finding]:
    raw = text.encode() if isinstance(text, str) else text
    with pytest.raises(SpecError) as caught:
        read_yaml(raw, "job.yaml", **limits)
    return list(caught.value.findings)


def first(text: str | bytes) -> str:
    return format_finding(wrong(text)[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1.", 1.0),
        (".5", 0.5),
        ("-2E3", -2000.0),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("+12", 12),
        ("-.inf", -math.inf),
        (".INF", math.inf),
        ("on", "on"),
        ("yes", "yes"),
        ("NO", "NO"),
        ("y", "y"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("-0o7", "-0o7"),
        ("2001-12-14", "2001-12-14"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("1.2.3", "1.2.3"),
        (".", "."),
        ("-", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("", None),
        ("nULL", "nULL"),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("'1'", "1"),
        ('"null"', "null"),
        ("=", "="),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    if text == "-":
        assert read("a:\n -\n").value == {"a": [None]}
        return
    got = read(f"a: {text}\n").value["a"]
    assert (got, type(got)) == (value, type(value))


def test_nan_is_a_number() -> None:
    got = read("a: .nan\n").value["a"]
    assert isinstance(got, float)
    assert math.isnan(got)


def test_block_text_flow_collections_and_anchors() -> None:
    doc = read("a: |\n  x\n  y\nb: {c: [1, 'two', {d: ~}]}\nbase: &b {k: 1}\nagain: *b\n")
    assert doc.value == {
        "a": "x\ny\n",
        "b": {"c": [1, "two", {"d": None}]},
        "base": {"k": 1},
        "again": {"k": 1},
    }


def test_byte_order_mark_carriage_returns_and_a_yaml_1_2_line_are_fine() -> None:
    assert read_yaml(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", "f").value == {"a": 1, "b": 2}
    assert read("%YAML 1.2\n---\na: 1\n...\n").value == {"a": 1}


def test_places_count_from_one_and_fall_back_to_the_nearest_ancestor() -> None:
    doc = read("name: x\nsteps:\n  - kind: sft\n    args:\n      model: qwen\n    empty:\n")
    assert doc.place(("name",)) == (1, 7, 1)
    assert doc.place(("name",), key=True) == (1, 1, 4)
    assert doc.place(("steps", 0, "args", "model")) == (5, 14, 4)
    assert doc.place(("steps", 0, "args", "nothing", "deeper")) == (5, 7, 5)
    assert doc.place(("steps", 0, "gone"), key=True) == (3, 5, 4)
    assert doc.place(("steps", 7)) == (3, 3, 1)
    assert doc.place(("steps", 0, "empty")) == (6, 5, 5)
    assert doc.place(()) == (1, 1, 4)


def test_the_house_format() -> None:
    doc = read("\n\n\n\n\nresources:\n  npu: 4\n")
    found = finding(
        doc, ("resources", "npu"), "unknown-key", "unknown key 'npu' - did you mean 'npus'?", key=True
    )
    assert format_finding(found) == (
        "job.yaml:7:3: unknown key 'npu' - did you mean 'npus'?\n"
        "  6 | resources:\n"
        "  7 |   npu: 4\n"
        "    |   ^^^"
    )


def test_hint_severity_and_json() -> None:
    doc = read("a: [1, x]\n")
    found = finding(doc, ("a", 1), "odd", "this is odd", hint="make it even", severity="warning")
    assert format_finding(found).splitlines() == [
        "job.yaml:1:8: warning: this is odd",
        "  1 | a: [1, x]",
        "    |        ^",
        "  hint: make it even",
    ]
    assert finding_json(found) == {
        "file": "job.yaml",
        "line": 1,
        "col": 8,
        "path": "a[1]",
        "code": "odd",
        "severity": "warning",
        "message": "this is odd",
        "hint": "make it even",
    }


def test_a_finding_without_a_place_is_one_line() -> None:
    assert format_finding(Finding("x", "no such file", file="job.yaml")) == "job.yaml: no such file"
    assert format_finding(Finding("x", "hm")) == "hm"


def test_the_caret_stands_under_wide_characters() -> None:
    text = first("a: {模型: 1, 模型: 2}\n")
    assert text.splitlines()[1:] == ["  1 | a: {模型: 1, 模型: 2}", "    |              ^^^^"]


def test_long_lines_are_cut_around_the_caret() -> None:
    text = "a: {" + "".join(f"k{i}: x, " for i in range(100)) + "k7: twice, " + "z: 1, " * 50 + "}"
    rows = first(text).splitlines()
    assert all(len(r) < 125 for r in rows)
    assert rows[1].startswith("  1 | ...")
    caret = rows[2].index("^")
    assert rows[1][caret:].startswith("k7: twice")
    assert rows[1].endswith("...")


def test_an_excerpt_sends_nothing_to_the_terminal() -> None:
    text = first("a: 1\nb: \x1b[31m\n")
    assert "\x1b" not in text
    assert text.startswith("job.yaml:2:4: the control character U+001B is not allowed")


def test_paths_as_people_write_them() -> None:
    assert path_text(("steps", 1, "args", "lora_rank")) == "steps[1].args.lora_rank"
    assert path_text(("env", "a.b", 0)) == 'env["a.b"][0]'
    assert path_text(()) == ""


def test_all_errors_at_once_each_at_its_place() -> None:
    found = wrong(
        "a: 1\na: 2\n1: x\nnull: y\n~: z\nt: !!python/object:os.system x\nu: *q\n<<: {}\nbig: 1e999\n"
    )
    assert [(f.code, f.line, f.col) for f in found] == [
        ("duplicate-key", 2, 1),
        ("key", 3, 1),
        ("key", 4, 1),
        ("key", 5, 1),
        ("tag", 6, 4),
        ("unknown-alias", 7, 4),
        ("merge-key", 8, 1),
        ("number", 9, 6),
    ]
    assert found[0].message == "duplicate key 'a'; it stands on line 1 already"
    assert found[1].hint == "put it in quotes: '1':"


def test_a_quoted_merge_sign_is_a_plain_key() -> None:
    assert read("'<<': 1\n").value == {"<<": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "job.yaml:1:1: the file is empty"),
        ("# only a remark\n", "the file is empty"),
        ("---\n", "the file is empty"),
        ("- a\n", "the top level must be a mapping (key: value), got a list"),
        ("text\n", "got 'text'"),
        ("a: 1\n---\nb: 2\n", "job.yaml:2:1: a second document"),
        ("a:\n\t- x\n", "job.yaml:2:1: broken YAML: a tab cannot indent YAML"),
        ("a: 1\n\tb: 2\n", "job.yaml:2:1: broken YAML: a tab cannot indent YAML"),
        ("a: @x\n", "text cannot start with @"),
        ("a: *.py\n", "job.yaml:1:4: broken YAML: text cannot start with * or &"),
        ("a: 'x\n", "job.yaml:1:4: broken YAML: this quote is never closed"),
        ("a: [1, 2\nb: 3\n", "job.yaml:1:4: broken YAML: this [ list is not closed"),
        ("a: b: c\n", "job.yaml:1:5: broken YAML: ': ' is not allowed here"),
        ("a:b\nc: 1\n", "that the line above is 'key: value'"),
        ("a:\n  b: 1\n c: 2\n", "job.yaml:3:2: broken YAML: this does not fit the mapping above"),
        ("a: {m: ${{ params.m }}}\n", "inside [ ] and { } put '${{ ... }}' in quotes"),
        ("a: {{ params.m }}\n", "a key must be text, got a mapping"),
        ("%YAML 1.1\n---\na: 1\n", "this file says YAML 1.1"),
        ("%YAML 1.3\n---\na: 1\n", "only YAML 1.2 can be read"),
        ('a: "\\0"\n', "NUL"),
        ('a: "\\q"\n', "unknown escape in double quotes"),
        ("a: &x [*x]\n", "*x stands inside its own anchor"),
        ("a: " + "9" * 5000, "has 5000 digits"),
        ("a: " + "[" * 300, "nested"),
        ("?\n: x\n", "got an empty key"),
    ],
)
def test_broken_text_is_told_in_plain_words(text: str, says: str) -> None:
    assert says in first(text)


def test_what_is_not_utf8() -> None:
    assert first("a: é".encode("latin-1")).startswith(
        "job.yaml:1:4: this is not UTF-8: byte 0xe9 at offset 3"
    )
    assert "UTF-16" in first("a: é".encode("utf-16"))
    assert first(b"\xef\xbb\xbfa: 1\nb: \xff").startswith(
        "job.yaml:2:4: this is not UTF-8: byte 0xff at offset 11"
    )
    assert first(b"a: 1\nb: \0").startswith("job.yaml:2:4: the control character U+0000")


def test_size_limit() -> None:
    assert "10000000 bytes" in first(b"a" * 10_000_000)
    assert wrong("a: 12345678\n", max_bytes=5)[0].code == "too-large"


def test_an_empty_file_can_be_allowed() -> None:
    doc = read_yaml(b"# nothing\n", "site.yaml", empty_ok=True)
    assert (doc.value, doc.place(("a",))) == ({}, (1, 1, 1))


def _bomb() -> str:
    rows = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    rows += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (_bomb(), "too-many-values"),
        ("a: &a " + "x" * 100_000 + "\nb: [" + "*a," * 1000 + "]\n", "too-many-values"),
        ("a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200)), "too-deep"),
        ("- " * 400_000, "too-deep"),
        ("".join(" " * i + "a:\n" for i in range(1200)), "too-deep"),
        ("a:\n" + "- a\n" * 240_000, "too-many-values"),
        ("a: 1\n" * 190_000, "duplicate-key"),
        ("'" * 900_000, "not-a-mapping"),
    ],
)
def test_hostile_files_end_quickly_with_a_clear_error(text: str, code: str) -> None:
    start = time.monotonic()
    assert wrong(text)[0].code == code
    assert time.monotonic() - start < 5


def test_findings_are_counted_out_only_so_far() -> None:
    found = wrong("a: 1\n" * 5000)
    assert len(found) == 101
    assert found[-1].message == "more than 100 errors; the rest is not read"


def test_a_large_honest_file_is_read_in_time() -> None:
    text = "a:\n" + "".join(f"  key{i:05}: value {i}\n" for i in range(40_000))
    start = time.monotonic()
    doc = read(text)
    assert doc.place(("a", "key39999")) == (40_001, 13, 11)
    assert time.monotonic() - start < 5
