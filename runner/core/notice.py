"""What is told of the end of a run: the words, the body that each kind of hook reads, and its answer."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, quote_plus, urlsplit, urlunsplit

HookKind = Literal["generic", "dingtalk", "feishu", "wecom"]
SIGNED: Sequence[HookKind] = ("dingtalk", "feishu")
_LONGEST = 2000  # bytes; WeCom takes 2048: developer.work.weixin.qq.com/document/path/91770
_TOKEN = 16  # characters; what is shorter may as well be a word
_HIDDEN = "***"
_CODES = {"dingtalk": ("errcode", "errmsg"), "wecom": ("errcode", "errmsg"), "feishu": ("code", "msg")}


@dataclass(frozen=True)
class Hook:
    """Where the end of a run is told; `secret` signs what is sent."""

    url: str = field(repr=False)
    kind: HookKind = "generic"
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Ended:
    """A run that has ended, as far as people are told of it."""

    run: int
    name: str
    state: str
    host: str
    seconds: float | None = None
    step: str | None = None  # the first that did not succeed
    why: str | None = None  # how that one ended
    loss: float | None = None


def post(hook: Hook, ended: Ended, now: float) -> tuple[str, dict[str, Any]]:
    """The address and the body of one request at this time."""
    text = text_of(ended)
    body: dict[str, Any] = {"msgtype": "text", "text": {"content": text}}
    match hook.kind:
        case "generic":
            return hook.url, {**_facts(ended), "text": text}
        case "feishu":
            body = {"msg_type": "text", "content": {"text": text}}
            return hook.url, {**_feishu_sign(hook.secret, now), **body}
        case "dingtalk" if hook.secret:
            return _dingtalk_signed(hook.url, hook.secret, now), body
    return hook.url, body


def refusal(kind: HookKind, answer: str) -> str | None:
    """What a hook that answered with status 200 has against the message; None when it took it."""
    if kind == "generic":
        return None
    code_key, text_key = _CODES[kind]
    try:
        said = json.loads(answer)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or code_key not in said:
        return f"the answer is none of a {kind} hook"
    return None if said[code_key] == 0 else f"{code_key} {said[code_key]}: {said.get(text_key)}"


def text_of(ended: Ended) -> str:
    """The message for people."""
    lines = [f"ascend-runner on {ended.host}: run {ended.run} ({ended.name}) {ended.state}"]
    if ended.step:
        lines.append(f"step {ended.step}: {ended.why}")
    if ended.seconds is not None:
        lines.append(f"time: {_time_text(ended.seconds)}")
    if ended.loss is not None:
        lines.append(f"loss: {ended.loss:.6g}")
    return "\n".join(lines).encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore")


def why_ended(state: str, reason: str | None, code: int | None, signal: int | None) -> str:
    """How a step ended, in words."""
    if reason == "signal":
        return f"signal {signal}"
    if reason == "exit_code":
        return f"exit code {code}"
    return reason or state


def masked(url: str) -> str:
    """The address without what may be a token in it."""
    parts = urlsplit(url)
    *above, last = parts.path.split("/")
    path = "/".join([*map(_masked_part, above), _masked_part(last) if parts.query or not last else _HIDDEN])
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    query = "&".join(f"{name}={_HIDDEN}" for name in names) or (_HIDDEN if parts.query else "")
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, query, ""))


def without_tokens(text: str, url: str) -> str:
    """A text without this address and the tokens in it."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    tokens = [*parts.path.split("/"), *re.split("[=&]", parts.query), *(value for _, value in query)]
    text = text.replace(url, masked(url))
    for token in sorted({t for t in tokens if len(t) >= _TOKEN}, key=len, reverse=True):
        text = text.replace(token, _HIDDEN)
    return text


def _masked_part(part: str) -> str:
    return _HIDDEN if len(part) >= _TOKEN and any(c.isdigit() for c in part) else part


def _facts(ended: Ended) -> dict[str, Any]:
    """What a program reads; JSON has no nan."""
    loss = ended.loss if ended.loss is not None and math.isfinite(ended.loss) else None
    told = {"run": ended.run, "name": ended.name, "state": ended.state, "host": ended.host}
    return {**told, "seconds": ended.seconds, "step": ended.step, "why": ended.why, "loss": loss}


def _dingtalk_signed(url: str, secret: str, now: float) -> str:
    # open.dingtalk.com/document/robots/customize-robot-security-settings, "sign"
    stamp = str(round(now * 1000))
    signed = _sha256(secret, f"{stamp}\n{secret}")
    return f"{url}{'&' if urlsplit(url).query else '?'}timestamp={stamp}&sign={quote_plus(signed)}"


def _feishu_sign(secret: str | None, now: float) -> dict[str, str]:
    # open.feishu.cn/document/client-docs/bot-v3/add-custom-bot: the key is what DingTalk signs, no text
    if not secret:
        return {}
    stamp = str(int(now))
    return {"timestamp": stamp, "sign": _sha256(f"{stamp}\n{secret}", "")}


def _sha256(key: str, text: str) -> str:
    import hmac

    return base64.b64encode(hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()).decode()


def _time_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    words = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else "", f"{rest} s"]
    return " ".join(w for w in words[: 2 if hours else 3] if w)
