"""The site file: two files made one, and what a step gets from it."""

from __future__ import annotations

import re

from runner.core.site import EXAMPLE, Site, environment, merge_sites
from runner.core.yamltext import Document, read_yaml


def doc(text: str, file: str = "user.yaml") -> Document:
    return read_yaml(text.encode(), file, empty_ok=True)


def site(text: str) -> Site:
    merged, found, _ = merge_sites(None, doc(text))
    assert found == []
    return merged


def test_without_files_everything_has_its_default() -> None:
    assert merge_sites(None, None) == (Site(), [], {})
    assert merge_sites(doc("# nothing\n"), None) == (Site(), [], {})
    assert environment(Site()) == {}


def test_the_users_file_wins_key_by_key_and_origins_are_known() -> None:
    host = doc(
        "offline: true\nmirrors: {pip_index_url: https://a.example, apt: http://b.example}\n"
        "mounts: {allow: [/data], ro: true}\nproxies: {no_proxy: [a, b]}\n",
        "host.yaml",
    )
    user = doc("mirrors: {apt: http://c.example}\nproxies: {no_proxy: [c]}\nmounts: {allow: null}\n")
    merged, found, origins = merge_sites(host, user)
    assert found == []
    assert merged.offline
    assert (merged.mirrors.pip_index_url, merged.mirrors.apt) == ("https://a.example", "http://c.example")
    assert (merged.mounts.allow, merged.mounts.ro, merged.proxies.no_proxy) == (None, True, ["c"])
    assert origins == {
        "offline": "host.yaml",
        "mirrors.pip_index_url": "host.yaml",
        "mirrors.apt": "user.yaml",
        "mounts.allow": "user.yaml",
        "mounts.ro": "host.yaml",
        "proxies.no_proxy": "user.yaml",
    }


def test_a_whole_section_can_be_taken_back() -> None:
    host = doc("notify: {url: https://x.example, kind: feishu}\n", "host.yaml")
    merged, _, origins = merge_sites(host, doc("notify: null\n"))
    assert (merged.notify, origins) == (None, {"notify": "user.yaml"})
    merged, _, origins = merge_sites(
        doc("notify: null\n", "host.yaml"), doc("notify: {url: https://y.example}\n")
    )
    assert origins == {"notify.url": "user.yaml"}


def test_findings_of_both_files_and_a_wrong_file_counts_as_not_there() -> None:
    merged, found, _ = merge_sites(
        doc("ofline: true\n", "host.yaml"), doc("backend: dokcer\nstack: cpu\ncaches: {modelscope: x y}\n")
    )
    assert [(f.file, f.line, f.message) for f in found] == [
        ("host.yaml", 1, "unknown key 'ofline' - did you mean 'offline'?"),
        ("user.yaml", 1, "backend must be one of local, docker, auto, got 'dokcer' - did you mean 'docker'?"),
        ("user.yaml", 3, "modelscope 'x y' does not fit the pattern ^(/|~/|~$)"),
    ]
    assert merged == Site()


def test_what_a_step_gets() -> None:
    given = site(
        "offline: true\ncaches: {modelscope: /c/ms, huggingface: ~/hf}\nwheelhouse: /w\n"
        "mirrors: {pip_index_url: https://i.example, pip_extra_index_urls: [https://j.example, https://k.example],"
        " hf_endpoint: https://hf.example}\n"
    )
    assert environment(given) == {
        "MODELSCOPE_CACHE": "/c/ms",
        "HF_HOME": "~/hf",
        "HF_ENDPOINT": "https://hf.example",
        "PIP_INDEX_URL": "https://i.example",
        "PIP_EXTRA_INDEX_URL": "https://j.example https://k.example",
        "PIP_FIND_LINKS": "/w",
        "HF_HUB_OFFLINE": "1",
    }


def test_proxies_come_in_both_cases_and_never_stand_before_this_machine() -> None:
    given = environment(site("proxies: {https: http://p.example:1, no_proxy: [.example.com]}\n"))
    direct = "localhost,127.0.0.1,::1,.example.com"
    assert given == {
        "https_proxy": "http://p.example:1",
        "HTTPS_PROXY": "http://p.example:1",
        "no_proxy": direct,
        "NO_PROXY": direct,
    }


def test_the_example_is_the_default_and_all_it_offers_is_valid() -> None:
    assert site(EXAMPLE) == Site()
    offered = re.sub(r"(?m)^#(?! \S)", "", EXAMPLE)
    full = site(offered)
    assert full.notify is not None
    assert full.wheelhouse == "/data/wheelhouse"
    written = doc(offered).value
    assert set(written) == set(Site.model_fields)
    for name in ("caches", "mirrors", "proxies", "mounts", "notify"):
        section = written[name]
        assert isinstance(section, dict)
        assert set(section) == set(type(getattr(full, name)).model_fields)
