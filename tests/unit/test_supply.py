"""What a build asks this machine for, and that it gets nothing else."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from runner.core.site import Mirrors
from runner.data.stacks import load_stack
from runner.errors import UsageError
from runner.images.render import variant_of
from runner.images.request import Request, build_command, build_environment, secrets_of
from runner.images.supply import Supply, served


def get(address: str, path: str) -> str | None:
    try:
        with urllib.request.urlopen(f"{address}/{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError:
        return None


def test_nothing_to_give_serves_nothing() -> None:
    with served(Supply()) as address:
        assert address is None


def test_what_a_site_needs(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificates")
    supply = Supply(
        "https://u:p@m.example/simple", ("https://x.example",), tmp_path / "ca.pem",
        git_mirrors={"https://github.com": "https://git.example/gh"}, indexes={"ascend": "https://a.example"},
    )  # fmt: skip
    with served(supply) as address:
        assert address
        assert get(address, "ca.pem") == "certificates"
        conf = get(address, "pip.conf")
        assert conf is not None
        assert "index-url = https://u:p@m.example/simple\nextra-index-url =\n    https://x.example" in conf
        assert (
            get(address, "gitconfig") == '[url "https://git.example/gh"]\n\tinsteadOf = https://github.com\n'
        )
        assert get(address, "indexes") == "ascend https://a.example\n"
        assert get(address, "wheels/") is None


def test_a_wheelhouse_is_the_only_source_and_nothing_outside_it_is_given(tmp_path: Path) -> None:
    house = tmp_path / "车轮 house"
    (house / "git").mkdir(parents=True)
    (house / "a+b-1.whl").write_text("wheel")
    (house / "git" / "M-1.tar.gz").write_text("tree")
    (tmp_path / "secret").write_text("no")
    with served(Supply("https://m.example/simple", wheelhouse=house)) as address:
        assert address
        assert get(address, "pip.conf") == f"[global]\nno-index = true\nfind-links = {address}/wheels/\n"
        assert "a%2Bb-1.whl" in str(get(address, "wheels/"))
        assert get(address, "wheels/a%2Bb-1.whl") == "wheel"
        assert get(address, "git/M-1.tar.gz") == "tree"
        for path in (
            "secret",
            "wheels/../secret",
            "wheels/%2e%2e/secret",
            "git/..%2f..%2fsecret",
            "wheels//etc/passwd",
        ):
            assert get(address, path) is None


def test_a_wheelhouse_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder"), served(Supply(wheelhouse=tmp_path / "none")):
        pass


def request(**more: object) -> Request:
    stack = load_stack("swift-4.3-cann9.0")
    return Request(stack, variant_of(stack, "A2"), "arm", ("x:y",), **more)  # type: ignore[arg-type]


def test_arguments_are_names_on_the_command_line_and_values_in_the_environment() -> None:
    asked = request(proxies={"https_proxy": "http://u:p@x"}, allow_unlocked=True, kernels=False)
    values = build_environment(asked, "sha256:1", "http://127.0.0.1:1")
    assert values == {
        "BASE_DIGEST": "sha256:1", "ALLOW_UNLOCKED": "1", "COMPILE_CUSTOM_KERNELS": "0", "https_proxy": "http://u:p@x",
        "BUILDER_COMMIT": "unknown", "FTP_PROXY": "http://127.0.0.1:1",
    }  # fmt: skip
    argv = build_command(asked, values, cross=True)
    assert "http://u:p@x" not in argv
    assert argv[4:6] == ["--platform", "linux/arm64"]
    assert {"https_proxy", "FTP_PROXY"} <= set(argv)


def test_a_registry_has_its_mirror() -> None:
    mirrored = request(mirrors=Mirrors(registries={"quay.io": "m.example/quay/"}))
    assert mirrored.base == "m.example/quay/ascend/cann:9.0.0-910b-ubuntu22.04-py3.11"
    assert build_environment(mirrored, "", None)["BASE_IMAGE"] == mirrored.base


def test_secrets_are_what_stands_before_the_at_sign() -> None:
    asked = request(proxies={"p": "http://user:pass@x"}, supply=Supply("https://token@m.example/simple"))
    assert secrets_of(asked) == ["user:pass", "token", "pass"]
