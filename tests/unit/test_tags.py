"""The references of images that are in use, and what is read from each."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.parse.cann import parse_cann
from runner.core.parse.tags import parse_tag
from runner.errors import UsageError

SWIFT = "quay.io/ascend/ms-swift"
VLLM = "quay.io/ascend/vllm-ascend"
CANN = "quay.io/ascend/cann"

FIELDS = ("scheme", "version", "generation", "chip", "cann", "torch_npu", "os", "python", "arch")
TABLE = """\
ms-swift:v4.1.3-A3-py311 swift-python v4.1.3 A3 A3 - - - 3.11 -
ms-swift:v4.1.3-A2-py311 swift-python v4.1.3 A2 A2 - - - 3.11 -
ms-swift:v4.3.0-A2-py311-CANN9.0.0-ubuntu22.04 swift-python-cann v4.3.0 A2 A2 9.0.0 - ubuntu22.04 3.11 -
ms-swift:v4.3.0-A3-py311-CANN8.3.RC1-ubuntu22.04 swift-python-cann v4.3.0 A3 A3 8.3.rc1 - ubuntu22.04 3.11 -
ms-swift:v4.5.2-cann9.1.0-torch_npu2.10.0.post2-910b-openeuler24.03-py3.12 \
  swift-cann-npu v4.5.2 A2 910b 9.1.0 2.10.0.post2 openeuler24.03 3.12 -
ms-swift:v4.4.2-cann9.0.1-torch_npu2.9.0.post4-a3-ubuntu22.04-py3.11 \
  swift-cann-npu v4.4.2 A3 a3 9.0.1 2.9.0.post4 ubuntu22.04 3.11 -
ms-swift:v4.6.0-cann9.1.0-beta.3-torch_npu2.10.0-950-ubuntu22.04-py3.10 \
  swift-cann-npu v4.6.0 950 950 9.1.0-beta.3 2.10.0 ubuntu22.04 3.10 -
ms-swift:main-A2-py311-arm builder-short main A2 A2 - - - 3.11 arm
ms-swift:main-300I-py39-x86 builder-short main 310P 300I - - - 3.9 x86
ms-swift:main-A5-py310-x86 builder-short main 950 A5 - - - 3.10 x86
ms-swift:releases-v4.5-A2-py311-arm builder-short releases-v4.5 A2 A2 - - - 3.11 arm
ms-swift:fix-a3-moe-A2-py311-arm builder-short fix-a3-moe A2 A2 - - - 3.11 arm
ms-swift:main-950dt-py312 swift-python main 950 950dt - - - 3.12 -
ms-swift:v4.5.2-cann9.1.0-torch_npu2.10.0.post4-a2-ubuntu22.04-py3.12-aarch64 \
  builder-long v4.5.2 A2 a2 9.1.0 2.10.0.post4 ubuntu22.04 3.12 arm
ms-swift:releases-v4.5-cann8.5.1-torch_npu2.9.0.post2-300i-openeuler24.03-py3.11-x86_64 \
  builder-long releases-v4.5 310P 300i 8.5.1 2.9.0.post2 openeuler24.03 3.11 x86
ms-swift:main-cann9.0.0-torch_npu2.9.0.post2-910b-ubuntu22.04-py3.11-aarch64 \
  builder-long main A2 910b 9.0.0 2.9.0.post2 ubuntu22.04 3.11 arm
ms-swift:main-cann9.1.0-torch_npu2.10.0.post4-a5-ubuntu22.04-py3.12-aarch64 \
  builder-long main 950 a5 9.1.0 2.10.0.post4 ubuntu22.04 3.12 arm
vllm-ascend:v0.18.0 vllm-ascend v0.18.0 A2 - - - ubuntu - -
vllm-ascend:v0.18.0-openeuler vllm-ascend v0.18.0 A2 - - - openeuler - -
vllm-ascend:v0.18.0-a3 vllm-ascend v0.18.0 A3 a3 - - ubuntu - -
vllm-ascend:v0.18.0-a3-openeuler vllm-ascend v0.18.0 A3 a3 - - openeuler - -
vllm-ascend:v0.18.0-310p vllm-ascend v0.18.0 310P 310p - - ubuntu - -
vllm-ascend:v0.23.0-a5 vllm-ascend v0.23.0 950 a5 - - ubuntu - -
vllm-ascend:v0.23.0-950dt-openeuler vllm-ascend v0.23.0 950 950dt - - openeuler - -
vllm-ascend:v0.23.0.post1 vllm-ascend v0.23.0.post1 A2 - - - ubuntu - -
vllm-ascend:v0.25.1rc1-a3 vllm-ascend v0.25.1rc1 A3 a3 - - ubuntu - -
vllm-ascend:main vllm-ascend main A2 - - - ubuntu - -
vllm-ascend:main-a3 vllm-ascend main A3 a3 - - ubuntu - -
vllm-ascend:nightly-main vllm-ascend nightly-main A2 - - - ubuntu - -
vllm-ascend:nightly-main-a3-openeuler vllm-ascend nightly-main A3 a3 - - openeuler - -
vllm-ascend:nightly-releases-v0.18.0-a5 vllm-ascend nightly-releases-v0.18.0 950 a5 - - ubuntu - -
vllm-ascend:nightly-a3 vllm-ascend nightly A3 a3 - - ubuntu - -
cann:9.1.0-beta.3-910b-ubuntu22.04-py3.12-devel cann - A2 910b 9.1.0-beta.3 - ubuntu22.04 3.12 -
cann:8.5.1-a3-openeuler24.03-py3.11 cann - A3 a3 8.5.1 - openeuler24.03 3.11 -
cann:8.5.0.alpha002-310p-ubuntu22.04-py3.11 cann - 310P 310p 8.5.0.alpha002 - ubuntu22.04 3.11 -
cann:8.3.rc1.alpha003-910b-ubuntu22.04-py3.11 cann - A2 910b 8.3.rc1.alpha003 - ubuntu22.04 3.11 -
cann:8.2.RC1-910-openeuler22.03-py3.11 cann - 910 910 8.2.rc1 - openeuler22.03 3.11 -
cann:9.0.1-950-ubuntu22.04-py3.10 cann - 950 950 9.0.1 - ubuntu22.04 3.10 -
"""
READ = [(f"quay.io/ascend/{line.split()[0]}", line.split()[1:]) for line in TABLE.splitlines()]


@pytest.mark.parametrize(("reference", "expected"), READ, ids=[r[0] for r in READ])
def test_reads_every_scheme(reference: str, expected: list[str]) -> None:
    tag = parse_tag(reference)
    assert [getattr(tag, name) or "-" for name in FIELDS] == expected
    assert f"{tag.repository}:{tag.tag}" == reference
    assert tag.product == tag.repository.rpartition("/")[2]
    assert "product" not in tag.assumed


@pytest.mark.parametrize("reference", [r[0] for r in READ])
def test_a_tag_alone_says_the_same_but_for_the_product_which_is_implied(reference: str) -> None:
    named = parse_tag(reference)
    alone = parse_tag(named.tag)
    assert "product" in alone.assumed
    same = {"repository": "", "assumed": ("product", *named.assumed)}
    assert asdict(alone) == {**asdict(named), **same}


@pytest.mark.parametrize("reference", [r[0] for r in READ])
def test_case_does_not_matter(reference: str) -> None:
    repository, _, tag = reference.rpartition(":")
    written, upper = parse_tag(reference), parse_tag(f"{repository}:{tag.upper()}")
    for name in ("generation", "cann", "os", "python", "arch", "scheme", "assumed"):
        assert getattr(written, name) == getattr(upper, name)


@pytest.mark.parametrize(
    ("reference", "repository"),
    [
        ("m.daocloud.io/quay.io/ascend/vllm-ascend:v0.18.0-a3", "m.daocloud.io/quay.io/ascend/vllm-ascend"),
        ("quay.nju.edu.cn/ascend/cann:9.0.0-a3-ubuntu22.04-py3.11", "quay.nju.edu.cn/ascend/cann"),
        ("localhost:5000/ms-swift:main-A2-py311-arm@sha256:" + "0f" * 32, "localhost:5000/ms-swift"),
        ("localhost:5000/ms-swift:main-A2-py311-arm", "localhost:5000/ms-swift"),
        ("[::1]:5000/ms-swift:main-A2-py311-arm", "[::1]:5000/ms-swift"),
    ],
)
def test_mirrors_ports_and_digests_are_no_part_of_the_tag(reference: str, repository: str) -> None:
    assert parse_tag(reference).repository == repository


@pytest.mark.parametrize(
    ("reference", "assumed"),
    [
        (f"{VLLM}:v0.18.0", ("generation", "os")),
        (f"{VLLM}:v0.18.0-openeuler", ("generation",)),
        (f"{VLLM}:v0.18.0-a3", ("os",)),
        (f"{VLLM}:v0.18.0-a3-openeuler", ()),
        ("v0.18.0", ("product", "generation", "os")),
        ("registry.example/team/modelscope:main-A2-py311-arm", ("product",)),
        (f"{SWIFT}:v4.1.3-A3-py311", ()),
        (f"{CANN}:8.5.1-a3-openeuler24.03-py3.11", ()),
    ],
)
def test_tells_what_is_only_implied(reference: str, assumed: tuple[str, ...]) -> None:
    assert parse_tag(reference).assumed == assumed


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("latest", "'latest' moves"),
        (f"{SWIFT}:latest", "'latest' moves"),
        (f"{CANN}:Latest", "'latest' moves"),
        (f"{SWIFT}@sha256:{'0f' * 32}", "a digest only, which tells nothing about the stack"),
        (f"sha256:{'0f' * 32}", "a digest only"),
        (f"localhost:5000/ms-swift@sha256:{'0f' * 32}", "a digest only"),
        (SWIFT, "names no tag"),
        ("localhost:5000/ms-swift", "names no tag"),
        ("ms-swift", "names no tag"),
        ("ms-swift:", "names no tag"),
        ("", "names no tag"),
        ("ms-swift:feature/x-A2-py311", "a '/' in its tag"),
        (f"{SWIFT}:v4.3.0", "fits no scheme of ms-swift"),
        (f"{SWIFT}:v4.3.0-A4-py311", "fits no scheme of ms-swift"),
        (f"{SWIFT}:v4.3.0-A2-py311-CANN9-ubuntu22.04", "fits no scheme of ms-swift"),
        (f"{SWIFT}:v4.5.2-cann9.1.0-torch_npu2.10.0.post2-910b-py3.12", "fits no scheme of ms-swift"),
        (f"{SWIFT}:v0.18.0-a3", "fits no scheme of ms-swift"),
        (f"{SWIFT}:9.0.1-950-ubuntu22.04-py3.10", "fits no scheme of ms-swift"),
        (f"{VLLM}:v4.1.3-A3-py311", "fits no scheme of vllm-ascend"),
        (f"{VLLM}:v0.18.0-a4", "fits no scheme of vllm-ascend"),
        (f"{VLLM}:v0.18.0-openeuler-a3", "fits no scheme of vllm-ascend"),
        (f"{VLLM}:v0.18.0-a3-cann2026.08.03-20260803", "fits no scheme of vllm-ascend"),
        (f"{VLLM}:nightly-main-a3-cann2026.08.03-20260803", "fits no scheme of vllm-ascend"),
        (f"{VLLM}:nightly-main-cann2026.08.03-20260803", "fits no scheme of vllm-ascend"),
        (f"{CANN}:8.2.rc1", "fits no scheme of cann"),
        (f"{CANN}:9.0.0-910c-ubuntu22.04-py3.11", "fits no scheme of cann"),
        ("nginx:main", "fits no scheme"),
        ("team/tool:v0.18.0", "fits no scheme"),
        ("v4.5.2", "fits no scheme"),
        ("python:3.11", "fits no scheme"),
        ("ms-swift:\x1b[2Jmain", r"\x1b"),
        ("ms-swift:main-A٢-py311", "fits no scheme"),
        ("ms-swift:" + "a-" * 20_000, "fits no scheme"),
    ],
)
def test_what_fits_nothing_is_refused_and_the_schemes_are_shown(reference: str, message: str) -> None:
    with pytest.raises(UsageError) as told:
        parse_tag(reference)
    assert message in told.value.message
    assert told.value.hint


def test_the_hint_shows_the_schemes_of_the_product_in_full() -> None:
    with pytest.raises(UsageError) as told:
        parse_tag(f"{SWIFT}:v4.3.0")
    hint = told.value.hint or ""
    shown = hint.removeprefix("tags look like ").split(", ")
    assert len(shown) == 5
    assert len({parse_tag(f"{SWIFT}:{example}").scheme for example in shown}) == 5


NAMES = st.from_regex(r"[a-z][a-z0-9_.]{0,8}(-[a-z][a-z_.]{0,6}){0,2}", fullmatch=True).filter(
    lambda name: not any(word in name for word in ("cann", "torch", "py", "ubuntu"))
)


@given(
    NAMES,
    st.sampled_from(["A2", "A3", "910b", "a5", "300I"]),
    st.sampled_from(["3.9", "3.10", "3.11", "3.12"]),
    st.sampled_from(["arm", "x86"]),
)
def test_what_the_builder_writes_is_read_back(branch: str, chip: str, python: str, arch: str) -> None:
    tag = parse_tag(f"ms-swift:{branch}-{chip}-py{python.replace('.', '')}-{arch}")
    assert (tag.version, tag.chip, tag.python, tag.arch) == (branch, chip, python, arch)


@given(st.text(max_size=200) | st.from_regex(r"[a-z0-9./:@-]{0,200}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert parse_tag(text).tag in text
    except UsageError as refused:
        assert refused.message.isprintable()


CANNS = (
    "8.1.rc1 8.2.RC1 8.2.rc2 8.3.rc1.alpha003 8.3.rc1 8.3.rc2 8.5.0.alpha001 8.5.0.alpha002 8.5.0.beta1 "
    "8.5.0 8.5.1 9.0.0-beta.2 9.0.0 9.1.0-beta.1 9.1.0-beta.3 9.1.0 9.10.0 10.0.rc1"
)


def test_canns_are_ordered() -> None:
    parsed = [parse_cann(text) for text in CANNS.split()]
    assert all(a < b and b > a and a != b for a, b in pairwise(parsed))
    assert " ".join(str(c) for c in parsed) == CANNS.lower()


def test_one_cann_in_two_spellings_is_equal() -> None:
    assert parse_cann("8.2.RC1") == parse_cann("8.2.rc1")
    assert parse_cann("9.1.0-beta.3") == parse_cann("9.1.0.beta3")
    assert parse_cann("8.2.RC1").text == "8.2.rc1"


def test_the_base_of_a_cann() -> None:
    assert [parse_cann(t).base for t in ("9.1.0-beta.3", "8.3.rc1")] == [(9, 1, 0), (8, 3, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9",
        "9.1",
        "v9.1.0",
        "9.1.0 ",
        "9.1.0-",
        "9.1.0-gamma.1",
        "9.1.0.1",
        "2026.08.03",
        "9.1.٠",
        "8.3.rc",
    ],
)
def test_what_is_no_cann_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as told:
        parse_cann(text)
    assert f"'{text}'" in told.value.message
    assert "9.1.0-beta.3" in (told.value.hint or "")
