"""Asks a served model one question over HTTP and checks its answer: python probe.py REQUEST.json."""
# Runs inside a stack's environment: standard library only, imports nothing of ours.

from __future__ import annotations

import http.client
import io
import json
import os
import re
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

OK, NOT_AS_EXPECTED, BAD_REQUEST, NO_ANSWER = 0, 1, 2, 3
EXCERPT = 500
RETRIED = (408, 425, 429, 500, 502, 503, 504)  # a server that is still starting or is overloaded


class BadRequestError(Exception):
    """The request file cannot be used; the text says what is wrong in it."""


class NoAnswerError(Exception):
    """Nothing that could be compared came back; the text says why."""

    def __init__(self, message: str, *, status: int | None = None, again: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.again = again


@dataclass(frozen=True)
class Request:
    """The request file: what is asked, where, and what the answer must be."""

    url: str
    body: dict[str, Any]
    path: str = "/v1/chat/completions"
    headers: dict[str, str] = field(default_factory=dict)
    api_key_env: str | None = None  # names the variable, so the key is never in the file
    expect: dict[str, str] | None = None  # contains, equals or matches
    timeout_s: float = 60
    attempts: int = 1
    out: str | None = None


@dataclass(frozen=True)
class Result:
    """What the out file says."""

    ok: bool
    message: str
    answer: str | None = None
    normalised: str | None = None
    status: int | None = None
    seconds: float | None = None
    usage: dict[str, Any] | None = None
    expect: dict[str, str] | None = None
    schema: str = "probe/1"


def main(argv: list[str]) -> int:
    """Print the question and the answer; end with 0 as expected, 1 not, 2 bad request file, 3 no answer."""
    if len(argv) != 1:
        print("probe: give one request file: python probe.py REQUEST.json", file=sys.stderr)
        return BAD_REQUEST
    try:
        request = read(Path(argv[0]))
        headers = headers_of(request)
    except BadRequestError as error:
        print(f"probe: {error}", file=sys.stderr)
        return BAD_REQUEST
    print(f"question: {question(request.body)}", flush=True)
    result = ask(request, headers)
    if request.out:
        write(Path(request.out), asdict(result))
    if result.answer is None:
        print(f"probe: {result.message}", file=sys.stderr)
        return NO_ANSWER
    print(f"answer:   {result.normalised}")
    print(f"probe: {result.message}", file=sys.stdout if result.ok else sys.stderr)
    return OK if result.ok else NOT_AS_EXPECTED


def read(path: Path) -> Request:
    """Read and check the request file."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRequestError(f"{path}: cannot be read ({error.strerror}); give an existing file") from error
    except ValueError as error:
        raise BadRequestError(f"{path}: not JSON in UTF-8 ({error})") from error
    if not isinstance(raw, dict):
        raise BadRequestError(f"{path}: must be a JSON object, not {type(raw).__name__}")
    known = {entry.name for entry in fields(Request)}
    if strange := sorted(set(raw) - known):
        raise BadRequestError(f"{path}: unknown key {strange[0]!r}; known are {', '.join(sorted(known))}")
    if problem := next(problems(raw), None):
        raise BadRequestError(f"{path}: {problem}")
    return Request(**raw)


def problems(raw: dict[str, Any]) -> Iterator[str]:
    """Give what is wrong in a request's values."""
    where = raw.get("url")
    if not isinstance(where, str) or urllib.parse.urlsplit(where).scheme not in {"http", "https"}:
        yield "url must be a text like http://127.0.0.1:8000"
    if not isinstance(raw.get("body"), dict):
        yield "body must be an object with model and messages"
    elif raw["body"].get("stream"):
        yield "body.stream must not be true; the probe compares whole answers"
    if not isinstance(raw.get("path", "/"), str) or not raw.get("path", "/").startswith("/"):
        yield "path must begin with /"
    headers = raw.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        yield "headers must map names to texts"
    for key in ("timeout_s", "attempts"):
        value = raw.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            yield f"{key} must be a number above 0"
    yield from problems_of_expect(raw.get("expect"))


def problems_of_expect(expect: Any) -> Iterator[str]:
    if expect is None:
        return
    if (
        not isinstance(expect, dict)
        or len(expect) != 1
        or not expect.keys() <= {"contains", "equals", "matches"}
    ):
        yield "expect must be null or one of {contains: text}, {equals: text}, {matches: pattern}"
        return
    value = next(iter(expect.values()))
    if not isinstance(value, str):
        yield "the value of expect must be a text"
    elif "matches" in expect:
        try:
            re.compile(value)
        except re.error as error:
            yield f"expect.matches is no regular expression ({error})"


def headers_of(request: Request) -> dict[str, str]:
    """Give the headers, with the API key when one is asked for."""
    headers = {"Content-Type": "application/json", **request.headers}
    if request.api_key_env:
        key = os.environ.get(request.api_key_env)
        if not key:
            raise BadRequestError(f"api_key_env: the variable {request.api_key_env} is not set; set it")
        headers["Authorization"] = f"Bearer {key}"
    return headers


def question(body: dict[str, Any]) -> str:
    """Give what is asked: the last message of a chat, or the prompt."""
    messages = body.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        content = messages[-1].get("content")
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return str(body.get("prompt", ""))


def ask(request: Request, headers: dict[str, str]) -> Result:
    """Ask up to `attempts` times, again only when another try can help."""
    tries = max(1, int(request.attempts))
    for attempt in range(1, tries + 1):
        began = time.monotonic()
        try:
            status, reply = send(request, headers)
            answer = answer_in(reply, status)
            return compare(request, answer, status, time.monotonic() - began, reply.get("usage"))
        except NoAnswerError as error:
            taken = time.monotonic() - began
            if attempt == tries or not error.again:
                message = f"{error} (attempt {attempt} of {tries})" if tries > 1 else str(error)
                return Result(False, message, status=error.status, seconds=taken, expect=request.expect)
            time.sleep(min(2.0 ** (attempt - 1), 10))
    raise AssertionError("unreachable: the last attempt returns")


def send(request: Request, headers: dict[str, str]) -> tuple[int, Any]:
    """Send one request and give the status and the parsed reply."""
    where = request.url.rstrip("/") + request.path
    sent = urllib.request.Request(where, json.dumps(request.body).encode(), headers)
    try:
        with opener(request.url).open(sent, timeout=request.timeout_s) as response:
            status, content = int(response.status), response.read()
    except urllib.error.HTTPError as error:
        body = error.read(EXCERPT).decode(errors="replace").strip()
        message = f"{where}: HTTP {error.code} {error.reason}: {body or '(empty body)'}"
        raise NoAnswerError(message, status=error.code, again=error.code in RETRIED) from error
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswerError(f"{where}: {why(error, request.timeout_s)}", again=True) from error
    try:
        return status, json.loads(content)
    except ValueError as error:
        said = content[:EXCERPT].decode(errors="replace")
        raise NoAnswerError(f"{where}: the reply is not JSON: {said!r}", status=status) from error


def opener(url: str) -> urllib.request.OpenerDirector:
    """Leave proxies out for a server on this host: they would look for it on their own."""
    host = urllib.parse.urlsplit(url).hostname or ""
    local = host in {"localhost", "::1"} or host.startswith("127.")
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))


def why(error: Exception, timeout_s: float) -> str:
    """Say what a failed connection means and what to look at next."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused: nothing listens there; is the service READY, on this host and port?"
    if isinstance(cause, TimeoutError):
        return f"no answer within {timeout_s:g} s; raise timeout_s or lower body.max_tokens"
    if isinstance(cause, socket.gaierror):
        return "the host name is unknown; check url"
    return f"the connection broke ({cause}); the service may have ended, see its log"


def answer_in(reply: Any, status: int) -> str:
    """Find the answer of a chat or of a completion."""
    try:
        choice = reply["choices"][0]
        content = choice["message"]["content"] if "message" in choice else choice["text"]
    except (KeyError, IndexError, TypeError) as error:
        said = json.dumps(reply, ensure_ascii=False)[:EXCERPT]
        raise NoAnswerError(f"the reply has no choices[0].message.content: {said}", status=status) from error
    return "" if content is None else str(content)


def compare(request: Request, answer: str, status: int, seconds: float, usage: Any) -> Result:
    """Hold the normalised answer against what is expected."""
    plain = normalise(answer)
    ok, message = True, f"answered in {seconds:.1f} s"
    if request.expect:
        [(how, wanted)] = request.expect.items()
        ok = {
            "contains": lambda: normalise(wanted) in plain,
            "equals": lambda: normalise(wanted) == plain,
            "matches": lambda: re.search(wanted, plain, re.DOTALL) is not None,
        }[how]()
        message += f", {how} {wanted!r}" if ok else f", but {how} {wanted!r} does not hold"
    return Result(
        ok=ok,
        message=message,
        answer=answer,
        normalised=plain,
        status=status,
        seconds=round(seconds, 3),
        usage=usage if isinstance(usage, dict) else None,
        expect=request.expect,
    )


def normalise(text: str) -> str:
    """Take away the debris of a chat template: an empty think block and white space around."""
    return re.sub(r"<think>\s*</think>", "", text).strip()


def write(out: Path, result: dict[str, Any]) -> None:
    """Let the result appear whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    part.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(out)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an answer may hold what the locale cannot print
    sys.exit(main(sys.argv[1:]))
