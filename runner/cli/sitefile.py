"""Finds and reads the two site files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from runner.core.site import Site, environment, merge_sites
from runner.core.yamltext import Document, read_yaml
from runner.errors import SpecError

HOST_FILE = Path("/etc/ascend-runner/site.yaml")


@dataclass(frozen=True)
class LoadedSite:
    """The site and, for each key that is set, the file that sets it."""

    site: Site
    origins: dict[str, str]


def user_file() -> Path:
    """RUNNER_SITE, else site.yaml in the user's configuration folder."""
    chosen = os.environ.get("RUNNER_SITE")
    return Path(chosen) if chosen else Path(platformdirs.user_config_path("ascend-runner")) / "site.yaml"


def load_site() -> LoadedSite:
    """Both files, the user's over the host's; SpecError when one is wrong."""
    site, findings, origins = merge_sites(_read(HOST_FILE), _read(user_file()))
    if findings:
        raise SpecError(findings)
    return LoadedSite(site, origins)


def site_environment(site: Site) -> dict[str, str]:
    """The site's variables with the user's home folder in place of `~`."""
    return {k: str(Path(v).expanduser()) if v.startswith("~") else v for k, v in environment(site).items()}


def _read(path: Path) -> Document | None:
    return read_yaml(path.read_bytes(), str(path), empty_ok=True) if path.is_file() else None
