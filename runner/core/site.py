"""The site file: what this host and this user always want, read from two files of which the user's wins."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_serializer

from runner.core.document import Document, path_text
from runner.core.notice import HookKind, masked
from runner.core.spec import Model, Size
from runner.core.validate import in_order, validate
from runner.errors import Finding

FolderPath = Annotated[str, Field(pattern=r"^(/|~/|~$)", description="absolute, or below ~")]
Url = Annotated[str, Field(pattern=r"^https?://\S+$")]
ProxyUrl = Annotated[str, Field(pattern=r"^(https?|socks5h?)://\S+$")]


class Caches(Model):
    """Where downloaded models and data sets are kept; null: where the libraries put them by themselves."""

    # no default: with MODELSCOPE_CACHE unset ModelScope uses ~/.cache/modelscope/hub, with it set the folder
    # itself (modelscope/hub/utils/utils.py), so naming the default folder would lose what is there
    modelscope: FolderPath | None = None
    huggingface: FolderPath | None = None


class Mirrors(Model):
    """Where packages and files come from instead of their first source."""

    pip_index_url: Url | None = None
    pip_extra_index_urls: list[Url] = Field(default_factory=list)
    hf_endpoint: Url | None = None
    apt: Url | None = None
    dnf: Url | None = None
    registries: dict[str, str] = Field(default_factory=dict, description="registry -> what stands in for it")
    git: dict[str, Url] = Field(default_factory=dict, description="host -> what replaces https://host")
    indexes: dict[str, Url] = Field(
        default_factory=dict, description="a stack's index by its name -> a mirror"
    )


class Proxies(Model):
    """How the network is reached; this machine itself is always reached directly."""

    http: ProxyUrl | None = None
    https: ProxyUrl | None = None
    no_proxy: list[str] = Field(default_factory=list)


class MountPolicy(Model):
    """Which host folders a job may mount."""

    allow: list[FolderPath] | None = Field(default=None, description="path prefixes; null: any folder")
    ro: bool = Field(default=False, description="true: every mount of a job is read-only")


class SiteLimits(Model):
    """What runs of this home may take together; null: no limit on runs, all that the host has of the rest."""

    runs: int | None = Field(default=None, ge=1)
    cpus: float | None = Field(default=None, gt=0)
    memory: Size | None = None


class Notify(Model):
    """Where the end of a run is told, unless the job says otherwise; when it is shown, without its tokens."""

    url: Url
    kind: HookKind = "generic"
    secret: str | None = Field(default=None, description="signs the message; dingtalk and feishu ask for one")

    @field_serializer("url")
    def _masked(self, url: str) -> str:
        return masked(url)

    @field_serializer("secret")
    def _hidden(self, secret: str | None) -> str | None:
        return secret and "***"


class Site(Model):
    """What holds for every job on this host unless the job says otherwise."""

    backend: Literal["local", "docker", "auto"] = "auto"
    stack: str | None = None
    offline: bool = False
    caches: Caches = Field(default_factory=Caches.model_construct)
    mirrors: Mirrors = Field(default_factory=Mirrors.model_construct)
    proxies: Proxies = Field(default_factory=Proxies.model_construct)
    # pip splits the variable at blanks (pip/_internal/cli/parser.py), so a folder with blanks cannot be named
    wheelhouse: Annotated[str, Field(pattern=r"^(/|~/)\S*$")] | None = None
    ca_bundle: FolderPath | None = Field(default=None, description="certificates that image builds trust")
    mounts: MountPolicy = Field(default_factory=MountPolicy.model_construct)
    limits: SiteLimits = Field(default_factory=SiteLimits.model_construct)
    notify: Notify | None = None


def merge_sites(host: Document | None, user: Document | None) -> tuple[Site, list[Finding], dict[str, str]]:
    """The site of both files key by key, the findings of both, and which file each set key comes from.

    A file with findings counts as not there.
    """
    if host is None and user is None:
        return Site.model_construct(), [], {}  # to build what validates is felt in every command
    findings: list[Finding] = []
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for doc in (host, user):
        if doc is None:
            continue
        site, wrong = validate(doc, Site)
        findings += in_order(wrong)
        if site is not None:
            values = _over(doc.value, values)
            origins = _origins_over(doc, origins)
    return Site.model_validate(values), findings, origins


def environment(site: Site) -> dict[str, str]:
    """The variables that a step gets from the site; folders are the host's and may begin with ~."""
    variables = {
        # modelscope_hub/constants.py, huggingface_hub/constants.py
        "MODELSCOPE_CACHE": site.caches.modelscope,
        "HF_HOME": site.caches.huggingface,
        "HF_ENDPOINT": site.mirrors.hf_endpoint,
        # pip: PIP_<OPTION>, several values separated by blanks (pip documentation, "Configuration")
        "PIP_INDEX_URL": site.mirrors.pip_index_url,
        "PIP_EXTRA_INDEX_URL": " ".join(site.mirrors.pip_extra_index_urls),
        "PIP_FIND_LINKS": site.wheelhouse,
        # also read by transformers and datasets (datasets/config.py); ModelScope has no such variable:
        # modelscope_hub 0.5.1 knows only the argument local_files_only
        "HF_HUB_OFFLINE": "1" if site.offline else None,
        **_proxy_variables(site.proxies),
    }
    return {name: value for name, value in variables.items() if value}


def _proxy_variables(proxies: Proxies) -> dict[str, str | None]:
    """Both cases: curl reads only http_proxy in lower case, other programs only upper case."""
    if proxies.http is None and proxies.https is None:
        return {}
    # probes ask served models on this machine; a proxy cannot reach them
    direct = ",".join(dict.fromkeys(("localhost", "127.0.0.1", "::1", *proxies.no_proxy)))
    named = {"http_proxy": proxies.http, "https_proxy": proxies.https, "no_proxy": direct}
    return {**named, **{name.upper(): value for name, value in named.items()}}


def _over(upper: Mapping[str, object], lower: Mapping[str, object]) -> dict[str, object]:
    merged = dict(lower)
    for key, value in upper.items():
        below = lower.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[key] = _over(value, below) if both else value  # type: ignore[arg-type]
    return merged


def _origins_over(doc: Document, lower: Mapping[str, str]) -> dict[str, str]:
    """The origin of each set key; a key that is set again as a whole drops what was below it."""
    own = _leaves(doc.value)
    kept = {k: v for k, v in lower.items() if not any(k == o or k.startswith(f"{o}.") for o in own)}
    above = {k.rpartition(".")[0] for k in own}
    return {k: v for k, v in kept.items() if k not in above} | dict.fromkeys(own, doc.file)


def _leaves(value: Mapping[str, object], path: tuple[str, ...] = ()) -> list[str]:
    found: list[str] = []
    for key, below in value.items():
        here = (*path, key)
        nested = _leaves(below, here) if isinstance(below, Mapping) else []
        found += nested or [path_text(here)]
    return found


# What `#` directly precedes is an example that can be put in force by removing that `#`.
EXAMPLE = """\
# Site file of Ascend Runner: what holds for every job on this host, unless the job says otherwise.
# Two files are read, key by key: the host's, and over it the user's. Every key may be left out.

# Where steps run: local (processes in a stack's environment), docker (containers),
# auto (docker where there is one).
backend: auto

# The stack for jobs that name neither a stack nor an image.
#stack: cpu

# true: nothing is downloaded; a model that is not in a cache is an error before the job starts.
offline: false

# Where downloaded models and data sets are kept, when not in the libraries' own place below ~/.cache:
# a large disk that all users share, for example.
#caches:
#  modelscope: /data/cache/modelscope
#  huggingface: /data/cache/huggingface

# Sources that are near. Steps and image builds use them.
#mirrors:
#  pip_index_url: https://mirrors.aliyun.com/pypi/simple
#  pip_extra_index_urls: [https://mirrors.huaweicloud.com/ascend/repos/pypi]
#  hf_endpoint: https://hf-mirror.com
#  apt: http://mirrors.aliyun.com
#  dnf: http://mirrors.aliyun.com/openeuler
#  registries: {quay.io: quay.example.com}
#  git: {github.com: "https://git.example.com/github"}
#  indexes: {ascend: "https://pypi.example.com/ascend/simple"}

# A file with the certificates that image builds trust, when a proxy or a mirror has one of its own.
#ca_bundle: /etc/ssl/certs/ca-certificates.crt

# How the network is reached. This machine itself is always reached directly.
#proxies:
#  http: http://proxy.example.com:3128
#  https: http://proxy.example.com:3128
#  no_proxy: [.example.com, 10.0.0.0/8]

# A folder with wheels, for hosts without a package index. No blanks in its path.
#wheelhouse: /data/wheelhouse

# Which host folders a job may mount. allow: path prefixes, null for any; ro: every mount is read-only.
mounts:
  allow: null
  ro: false

# What the runs of this home may take together. runs: so many at once (null: any number); cpus and memory
# count for steps that ask for some under resources (null: all that this host has).
limits:
  runs: null
  cpus: null
  memory: null

# Who is told that a run has ended, unless the job says otherwise. kind: generic (JSON), dingtalk, feishu,
# wecom. secret: signs the message, when the robot of dingtalk or feishu asks for it.
# An address with a token is a secret too: keep this file readable for its user only.
#notify:
#  url: https://oapi.dingtalk.com/robot/send?access_token=TOKEN
#  kind: dingtalk
#  secret: SEC...
"""
