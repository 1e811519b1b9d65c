"""Says in plain words what the YAML parser could not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import yaml

from runner.core.document import Spot, spot_finding
from runner.core.wording import printable
from runner.errors import Finding

_QUOTES = "put text that holds ': ', ' #', quotes or brackets in quotes"
_FLOW_HINT = "inside [ ] and { } put '${{ ... }}' in quotes"
_LINE_ABOVE = "check the indentation, and that the line above is 'key: value' with a space after the ':'"


class _Words(NamedTuple):
    message: str
    hint: str | None = None
    at_context: bool = False  # point to where the construct began, not to where reading failed


# libyaml's own problem texts (its src/scanner.c and src/parser.c)
_PROBLEMS = {
    "block sequence entries are not allowed in this context": _Words(
        "'- ' is not allowed here", "start the list on a new line"
    ),
    "did not find expected ',' or ']'": _Words("this [ list is not closed, or lacks a comma", None, True),
    "did not find expected ',' or '}'": _Words("this { mapping is not closed, or lacks a comma", None, True),
    "found unexpected end of stream": _Words("this quote is never closed", None, True),
    "found unexpected document indicator": _Words("this quote is never closed", None, True),
    "could not find expected ':'": _Words("this line is no 'key: value'", "is there a ': ' missing?", True),
    "did not find expected '-' indicator": _Words(
        "this line does not belong to the list above", "check its indentation, or begin it with '- '"
    ),
    "found unknown escape character": _Words(
        "unknown escape in double quotes", "use single quotes, or write \\\\ for a backslash"
    ),
    "did not find expected hexdecimal number": _Words("this escape needs hexadecimal digits"),
    "found invalid Unicode character escape code": _Words("this escape is no Unicode character"),
    "did not find expected alphabetic or numeric character": _Words(
        "text cannot start with * or &", "put it in quotes", True
    ),
    "did not find expected comment or line break": _Words("after | or > the text starts on the next line"),
    "found undefined tag handle": _Words("tags such as !x are not supported", "put the text in quotes"),
    "did not find expected <document start>": _Words("nothing may follow the document here"),
    "found incompatible YAML document": _Words("only YAML 1.2 can be read", "remove the %YAML line"),
    "exceeded maximum nesting depth": _Words("this is nested too deeply"),
    "found a tab character that violates indentation": _Words("a tab cannot indent YAML", "use spaces"),
    "found a tab character where an indentation space is expected": _Words(
        "a tab cannot indent YAML", "use spaces"
    ),
}


def problem_finding(file: str, lines: Sequence[str], problem: yaml.YAMLError) -> Finding:
    """The finding for what the parser raised, at the place where a person should look."""
    if not isinstance(problem, yaml.MarkedYAMLError):
        return Finding("yaml", f"broken YAML: {printable(str(problem))[:200]}", file=file)
    mark, start = problem.problem_mark, problem.context_mark
    line, col = (mark.line, mark.column) if mark is not None else (0, 0)
    words = _words(problem, _char_at(lines, line, col), lines[line] if line < len(lines) else "")
    if words.at_context and start is not None:
        line, col = start.line, start.column
    spot = _on_text(lines, line, col)
    return spot_finding(file, lines, spot, "yaml", f"broken YAML: {words.message}", hint=words.hint)


def _words(problem: yaml.MarkedYAMLError, char: str, line: str) -> _Words:
    text = problem.problem or "it cannot be read"
    words = _PROBLEMS.get(text)
    if text == "mapping values are not allowed in this context":
        return _Words("': ' is not allowed here", _QUOTES if line.count(":") > 1 else _LINE_ABOVE)
    if text == "found character that cannot start any token":
        if char == "\t":
            return _Words("a tab cannot indent YAML", "use spaces")
        return _Words(f"text cannot start with {printable(char)}", "put it in quotes")
    if text == "did not find expected node content":
        in_flow = problem.context == "while parsing a flow node"
        return _Words(
            "a value is missing, or [ or { is not closed" if in_flow else f"unexpected '{char}'", _QUOTES
        )
    if text == "did not find expected key":
        return _Words("this does not fit the mapping above", f"check the indentation; {_QUOTES}")
    if words is not None and "${{" in line and text.startswith("did not find expected ','"):
        return words._replace(hint=_FLOW_HINT, at_context=False)
    return words or _Words(printable(text))


def _char_at(lines: Sequence[str], line: int, col: int) -> str:
    return lines[line][col : col + 1] if line < len(lines) else ""


def _on_text(lines: Sequence[str], line: int, col: int) -> Spot:
    """The place itself, or the end of the last line with text when it lies behind the end."""
    if line < len(lines) and (lines[line].strip() or col):
        return Spot(line + 1, min(col, len(lines[line])) + 1, 1)
    last = max((i for i, text in enumerate(lines[: line + 1]) if text.strip()), default=0)
    return Spot(last + 1, len(lines[last].rstrip()) + 1, 1)
