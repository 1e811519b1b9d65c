"""Tells a site's hook that a run has ended."""

from __future__ import annotations

import json
import socket
import sys
import threading
import urllib.request

from runner.core.site import Notify

_PATIENCE_S = 10


def message(kind: str, run: int, name: str, state: str) -> dict[str, object]:
    """The body that each kind of hook reads; the chat programs' own documents name the keys."""
    text = f"ascend-runner on {socket.gethostname()}: run {run} ({name}) {state}"
    match kind:
        case "dingtalk" | "wecom":
            return {"msgtype": "text", "text": {"content": text}}
        case "feishu":
            return {"msg_type": "text", "content": {"text": text}}
    return {"run": run, "name": name, "state": state, "host": socket.gethostname(), "text": text}


def notify(hook: Notify, run: int, name: str, state: str) -> threading.Thread:
    """Post in a thread, so that a slow hook delays nobody; a failure is said on stderr and harms no run."""
    body = json.dumps(message(hook.kind, run, name, state), ensure_ascii=False).encode()

    def post() -> None:
        request = urllib.request.Request(hook.url, body, {"Content-Type": "application/json; charset=utf-8"})
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE_S):
                pass
        except OSError as e:
            print(f"notify {hook.url}: {e}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=post)
    thread.start()
    return thread
