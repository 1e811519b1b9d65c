"""Which published images fit, and that those we list can be read."""

from __future__ import annotations

from importlib.resources import files

import pytest
import yaml

from runner.core.official import fitting
from runner.core.parse.tags import ImageTag, parse_tag
from runner.data.support import load_support

LISTED = yaml.safe_load((files("runner.data") / "support" / "official_images.yaml").read_text("utf-8"))
PUBLISHED = [parse_tag(f"{LISTED['repository']}:{entry['tag']}") for entry in LISTED["tags"]]


def versions(tags: list[ImageTag]) -> list[str | None]:
    return [t.version for t in tags]


def test_what_is_listed_is_of_ms_swift_and_there_once() -> None:
    assert set(LISTED) == {"repository", "source", "tags"}
    assert all(set(entry) == {"tag", "read"} and isinstance(entry["read"], bool) for entry in LISTED["tags"])
    assert len({t.tag for t in PUBLISHED}) == len(PUBLISHED)
    assert {t.product for t in PUBLISHED} == {"ms-swift"}
    assert {t.scheme for t in PUBLISHED} == {"swift-python", "swift-python-cann", "swift-cann-npu"}


@pytest.mark.parametrize("generation", ["A2", "A3"])
def test_the_newest_come_first(generation: str) -> None:
    found = fitting(list(reversed(PUBLISHED)), generation=generation)
    assert versions(found) == ["v4.5.2", "v4.5.2", "v4.4.2", "v4.4.2", "v4.3.0", "v4.1.3"]
    assert {t.generation for t in found} == {generation}


def test_none_is_published_for_the_950() -> None:
    assert fitting(PUBLISHED, generation="950") == []


def test_versions_are_compared_as_versions_and_branches_come_last() -> None:
    tags = [
        parse_tag(f"ms-swift:{version}-A2-py311")
        for version in ("main", "v4.9.0", "v4.10.0rc1", "releases-v4.12", "v4.10.0", "v4.10.0.post1")
    ]
    assert versions(fitting(tags, generation="A2")) == [
        "v4.10.0.post1",
        "v4.10.0",
        "v4.10.0rc1",
        "v4.9.0",
        "main",
        "releases-v4.12",
    ]


def test_equal_versions_keep_their_order() -> None:
    both = [t for t in PUBLISHED if t.version == "v4.5.2" and t.generation == "A3"]
    assert fitting(both, generation="A3") == both
    assert fitting(both[::-1], generation="A3") == both[::-1]


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("25.5.2", ["v4.5.2", "v4.5.2", "v4.4.2", "v4.4.2", "v4.3.0"]),
        ("26.0.rc1", ["v4.5.2", "v4.5.2", "v4.4.2", "v4.4.2", "v4.3.0"]),
        ("25.0.1", ["v4.4.2", "v4.4.2", "v4.3.0"]),
        ("24.1.0", []),
        ("25.50", []),
    ],
)
def test_the_driver_is_known_to_run_the_cann(driver: str, expected: list[str]) -> None:
    rows = load_support().driver.rows
    assert versions(fitting(PUBLISHED, generation="A2", driver=driver, rows=rows)) == expected


@pytest.mark.parametrize(
    ("os", "expected"),
    [
        ("openeuler24.03", ["v4.5.2", "v4.4.2"]),
        ("openeuler", ["v4.5.2", "v4.4.2"]),
        ("ubuntu22.04", ["v4.5.2", "v4.4.2", "v4.3.0"]),
        ("Ubuntu", ["v4.5.2", "v4.4.2", "v4.3.0"]),
        ("openeuler22.03", []),
        ("ubuntu2", []),
    ],
)
def test_the_os_is_the_one_asked_for(os: str, expected: list[str]) -> None:
    assert versions(fitting(PUBLISHED, generation="A2", os=os)) == expected


def test_the_python_is_the_one_asked_for() -> None:
    assert versions(fitting(PUBLISHED, generation="A2", python="3.12")) == ["v4.5.2", "v4.5.2"]
    assert fitting(PUBLISHED, generation="A2", python="3.1") == []


def test_other_products_are_left_out() -> None:
    others = [
        parse_tag("vllm-ascend:v0.18.0-a3"),
        parse_tag("cann:9.0.0-a3-ubuntu22.04-py3.11"),
    ]
    assert fitting(others, generation="A3") == []
