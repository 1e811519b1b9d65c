"""Tells a hook that a run has ended."""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
import urllib.error
import urllib.request

from runner.core.notice import Ended, Hook, masked, post, refusal, without_tokens

_PATIENCE_S = 10
_AGAIN_S = 2.0
_ANSWER = 1 << 14


def notify(hook: Hook, ended: Ended) -> threading.Thread:
    """Post in a thread, so that a slow hook delays nobody; a failure is said on stderr and harms no run."""
    thread = threading.Thread(target=_tell, args=(hook, ended))
    thread.start()
    return thread


def say(url: str, run: int, what: str) -> None:
    """Note in the agent's log what became of a notification, without the tokens of the address."""
    print(f"notify {masked(url)} of run {run}: {without_tokens(what, url)}", file=sys.stderr, flush=True)


def _tell(hook: Hook, ended: Ended) -> None:
    failed, passing = _send(hook, ended)
    if failed and passing:
        time.sleep(_AGAIN_S)
        failed, _ = _send(hook, ended)
    if failed:
        say(hook.url, ended.run, failed)


def _send(hook: Hook, ended: Ended) -> tuple[str | None, bool]:
    """Post once: what went wrong, and whether it may pass."""
    url, body = post(hook, ended, time.time())
    data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    try:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json; charset=utf-8"})
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as response:
            return refusal(hook.kind, response.read(_ANSWER).decode("utf-8", "replace")), False
    except urllib.error.HTTPError as e:
        with e:
            return str(e), e.code >= 500
    except (OSError, http.client.HTTPException) as e:
        return str(e) or type(e).__name__, not isinstance(e, http.client.InvalidURL)
    except ValueError as e:
        return str(e), False
