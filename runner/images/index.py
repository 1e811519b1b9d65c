"""What a package index says: which files a version has, and what a package declares."""

from __future__ import annotations

import io
import json
import re
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.parser import HeaderParser
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from runner.core.lockfile import canonical
from runner.errors import UnreachableError

PYPI = "https://pypi.org/simple"
_JSON = "application/vnd.pypi.simple.v1+json"
_TIMEOUT_S = 30


@dataclass(frozen=True)
class Listed:
    """One file of a package on an index."""

    name: str
    url: str
    sha256: str | None


def files_of(index: str, package: str) -> list[Listed]:
    """All files of a package; UnreachableError when the index cannot be asked."""
    url = f"{index.rstrip('/')}/{canonical(package)}/"
    request = urllib.request.Request(url, headers={"Accept": f"{_JSON}, text/html;q=0.5"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            body, kind, at = answer.read(), answer.headers.get("Content-Type", ""), answer.url
    except urllib.error.HTTPError as e:
        if e.code == 404:
            return []
        raise UnreachableError(f"{_plain(url)} answers {e.code}") from e
    except OSError as e:
        raise UnreachableError(f"cannot reach {_plain(url)}: {getattr(e, 'reason', e)}") from e
    if "json" in kind:
        files = json.loads(body)["files"]
        return [Listed(f["filename"], urljoin(at, f["url"]), f["hashes"].get("sha256")) for f in files]
    page = _Page()
    page.feed(body.decode("utf-8", "replace"))
    return [Listed(n, urljoin(at, h.partition("#")[0]), _sha256(h)) for n, h in page.links]


def hashes_of(index: str, package: str, version: str) -> tuple[str, ...]:
    """The hashes of all files of one version, as pip wants them; empty when the index has none."""
    mark = re.compile(rf"{re.escape(canonical(package))}-{re.escape(version)}(-|\.tar|\.zip)", re.IGNORECASE)
    chosen = [f for f in files_of(index, package) if mark.match(_canonical_file(f.name))]
    return tuple(sorted(f"sha256:{f.sha256}" for f in chosen if f.sha256))


_REQUIREMENTS = {"vllm": "requirements/common.txt", "vllm-ascend": "requirements.txt"}


def declared(index: str, package: str, version: str) -> list[str]:
    """What the source distribution of a version says that it requires, for the build that images make.

    vllm is built for no device: then it declares what is common to all, and nothing of CUDA.
    """
    mark = re.compile(rf"{re.escape(canonical(package))}-{re.escape(version)}\.tar\.gz", re.IGNORECASE)
    found = next((f for f in files_of(index, package) if mark.fullmatch(_canonical_file(f.name))), None)
    if found is None:
        raise UnreachableError(f"{index} has no source distribution of {package} {version}")
    with urllib.request.urlopen(found.url, timeout=300) as answer:
        whole = io.BytesIO(answer.read())
    with tarfile.open(fileobj=whole) as archive:
        own = _REQUIREMENTS.get(canonical(package))
        text = _member(archive, own) if own else None
        if text is not None:
            lines = (line.split(" #")[0].strip() for line in text.splitlines())
            return [line for line in lines if line and line[0] not in "#-"]
        info = HeaderParser().parsestr(_member(archive, "PKG-INFO") or "")
        return list(info.get_all("Requires-Dist") or [])


def _member(archive: tarfile.TarFile, path: str) -> str | None:
    name = next((n for n in archive.getnames() if n.partition("/")[2] == path), None)
    file = archive.extractfile(name) if name else None
    return file.read().decode("utf-8") if file else None


def _canonical_file(name: str) -> str:
    stem, dash, rest = name.partition("-")
    return canonical(stem) + dash + rest.replace("%2B", "+") if dash else name


def _sha256(link: str) -> str | None:
    m = re.search(r"#sha256=([0-9a-f]{64})", link)
    return m[1] if m else None


def _plain(url: str) -> str:
    """Without the name and password that an address may carry."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self._href: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._href = dict(attrs).get("href") if tag == "a" else None

    def handle_data(self, data: str) -> None:
        if self._href and data.strip():
            self.links.append((data.strip(), self._href))
            self._href = None
