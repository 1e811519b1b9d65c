"""What a build asks this machine for: CA bundle, pip.conf, git's settings, and the files of a wheelhouse.

It is served on this machine's own address for as long as the build lasts. The address reaches the build by a
predefined build argument, which Docker keeps out of layers, history and cache keys, with the classic
builder too.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from runner.errors import UsageError

ARGUMENT = "FTP_PROXY"  # nothing in a build uses it any more


@dataclass(frozen=True)
class Supply:
    """What this site needs for the network; all of it may be secret."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    ca_bundle: Path | None = None
    wheelhouse: Path | None = None
    git_mirrors: dict[str, str] = field(default_factory=dict)  # https://github.com -> a mirror
    indexes: dict[str, str] = field(default_factory=dict)  # a stack's index by name -> a mirror

    def __bool__(self) -> bool:
        return any(getattr(self, f.name) for f in fields(self))


def pip_conf(supply: Supply, address: str) -> str:
    """pip's settings; a wheelhouse is the only source when there is one."""
    lines = ["[global]"]
    if supply.wheelhouse:
        lines += ["no-index = true", f"find-links = {address}/wheels/"]
    else:
        lines += [f"index-url = {supply.index_url}"] if supply.index_url else []
        extra = supply.extra_index_urls
        lines += ["extra-index-url =", *(f"    {url}" for url in extra)] if extra else []
    return "\n".join(lines) + "\n"


def git_config(supply: Supply) -> str:
    """git's settings: the mirror of each host."""
    return "".join(f'[url "{to}"]\n\tinsteadOf = {of}\n' for of, to in supply.git_mirrors.items())


@contextmanager
def served(supply: Supply) -> Iterator[str | None]:
    """Serve it on 127.0.0.1 and give the address; None when there is nothing to serve."""
    if not supply:
        yield None
        return
    if supply.wheelhouse and not supply.wheelhouse.is_dir():
        raise UsageError(f"the wheelhouse {supply.wheelhouse} is no folder")
    handler = functools.partial(_Handler, supply)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield address
        finally:
            server.shutdown()
            thread.join()


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, supply: Supply, *args: object) -> None:
        self._supply = supply
        super().__init__(*args, directory=str(supply.wheelhouse or "/nonexistent"))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        text = self._text(self.path.lstrip("/"))
        if text is not None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        elif self._supply.wheelhouse and self.path.startswith(("/wheels/", "/git/")):
            super().do_GET()
        else:
            self.send_error(404)

    def translate_path(self, path: str) -> str:
        folder, _, name = unquote(path.lstrip("/")).partition("/")
        root = self._supply.wheelhouse or Path("/nonexistent")
        plain = Path(name).name if name else ""
        return str(root / plain if folder == "wheels" else root / "git" / plain)

    def _text(self, name: str) -> bytes | None:
        supply = self._supply
        match name:
            case "ca.pem" if supply.ca_bundle:
                return supply.ca_bundle.read_bytes()
            case "pip.conf" if supply.index_url or supply.extra_index_urls or supply.wheelhouse:
                host, port = cast("tuple[str, int]", self.server.server_address)
                return pip_conf(supply, f"http://{host}:{port}").encode()
            case "indexes" if supply.indexes:
                return "".join(f"{k} {v}\n" for k, v in supply.indexes.items()).encode()
            case "gitconfig" if supply.git_mirrors:
                return git_config(supply).encode()
        return None

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: addresses may be secret."""
