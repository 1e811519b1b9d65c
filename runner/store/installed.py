"""What is really installed in a stack's environment, by what its packages say of themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.core.secrecy import without_credentials
from runner.store.hashes import Hashes

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_MOST = 16


def installed(environment: Path, known: Hashes) -> dict[str, str]:
    """Name and version of each package; looked up again when a package has come or gone."""
    places = sorted(environment.glob("lib/python3*/site-packages"))
    key, mark = str(environment), _mark(places)
    found = known.environments.pop(key, None)
    if not isinstance(found, dict) or found.get("mark") != mark:
        found = {"mark": mark, "packages": _packages(places)}
    known.environments[key] = found
    for old in list(known.environments)[:-_MOST]:
        del known.environments[old]
    return dict(found["packages"])


def _mark(places: list[Path]) -> list[Any]:
    """Changes with every file that appears in or leaves these folders."""
    return [[str(p), p.stat().st_mtime_ns] for p in places if p.is_dir()]


def _packages(places: list[Path]) -> dict[str, str]:
    from importlib.metadata import distributions

    named = {}
    for package in distributions(path=[str(p) for p in places]):
        try:
            said = package.metadata
            if "Name" in said and "Version" in said:
                named[said["Name"]] = f"{said['Version']} {_origin(package)}".rstrip()
        except (OSError, ValueError, TypeError):  # its METADATA is missing or torn
            continue
    return dict(sorted(named.items(), key=lambda item: item[0].lower()))


def _origin(package: Distribution) -> str:
    """The commit of a package that was installed from a repository (PEP 610)."""
    try:
        source = json.loads(package.read_text("direct_url.json") or "{}")
        return f"({without_credentials(str(source['url']))}@{source['vcs_info']['commit_id']})"
    except (ValueError, KeyError, TypeError):
        return ""
