"""READY: an answer that knows our model, from a listener that belongs to the attempt's own tree."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

FIRST_PAUSE_S, LONGEST_PAUSE_S, ANSWER_S = 0.1, 0.5, 5.0
MOVED_BY = 100  # ms-swift tries the next ports one after the other
_LISTEN = "0A"


class Listener(NamedTuple):
    """A TCP socket that waits for connections."""

    port: int
    host: str
    inode: str


def watch_port(want: dict[str, Any], tree: Callable[[], Iterable[int]]) -> tuple[str, str]:
    """Wait until the service is READY or cannot become it; a verdict and what to say of it."""
    port, until = want["port"], time.monotonic() + want["timeout_s"]
    pause, strange = FIRST_PAUSE_S, 0
    while time.monotonic() < until:
        every = listeners()
        own_inodes = sockets_of(tree())
        own = [s for s in every if s.inode in own_inodes]
        ours = [s for s in own if s.port == port]
        if any(answers(s, want) for s in ours):
            return "ready", f"READY: port {port} answers"
        near = [s for s in own if 0 < s.port - port <= MOVED_BY] if want.get("path") and not ours else []
        moved = next((s for s in near if answers(s, want)), None)
        if moved:
            return "port_taken", f"the server listens on port {moved.port} instead of {port}, which was busy"
        taken = not ours and any(s.port == port for s in every)
        strange = strange + 1 if taken else 0
        if strange == 3:  # not a socket of ours that appeared between two looks
            return "port_taken", f"port {port} is used by a process that is not of this attempt"
        time.sleep(pause)
        pause = min(pause * 1.05, LONGEST_PAUSE_S)
    return (
        "not_ready",
        f"not READY within {want['timeout_s']:g} s: port {port} did not give the awaited answer",
    )


def answers(listener: Listener, want: dict[str, Any]) -> bool:
    """Whether this listener answers as our service does: 200, and the model's name among those it serves."""
    if want.get("path") is None:
        return True
    import http.client  # only services need it, and it takes as long to load as all the rest

    connection = http.client.HTTPConnection(listener.host, listener.port, timeout=ANSWER_S)
    try:
        connection.request("GET", want["path"], headers=want.get("headers") or {})
        response = connection.getresponse()
        body = response.read(1 << 20)
        if response.status != 200:
            return False
        return want.get("model") is None or want["model"] in models(json.loads(body))
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()


def models(answer: Any) -> list[str]:
    """The ids in an answer of /v1/models."""
    rows = answer.get("data") if isinstance(answer, dict) else None
    return [str(row.get("id")) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def listeners() -> list[Listener]:
    """Every listening TCP socket of our network namespace."""
    found = []
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/self/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN:
                    address, _, port = fields[1].rpartition(":")
                    found.append(Listener(int(port, 16), host_of(address, family), fields[9]))
    return found


def host_of(text: str, family: int) -> str:
    """The address to ask; a socket that listens everywhere is asked on the loopback."""
    words = [bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8)]
    host = socket.inet_ntop(family, b"".join(words))
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def sockets_of(pids: Iterable[int]) -> set[str]:
    """The inodes of all sockets that these processes hold."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            for fd in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    target = os.readlink(fd)  # noqa: PTH115 - Path.readlink is of Python 3.9
                    if target.startswith("socket:["):
                        found.add(target[8:-1])
    return found
