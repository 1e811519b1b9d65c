"""What is told of a run's end, and what is kept out of sight."""

from __future__ import annotations

import json
import math

import pytest

from runner.core.notice import Ended, Hook, masked, post, refusal, text_of, why_ended, without_tokens

DINGTALK = "https://oapi.dingtalk.com/robot/send?access_token=0123456789abcdef"
FEISHU = "https://open.feishu.cn/open-apis/bot/v2/hook/db264cc8-856d-4be9"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (DINGTALK, "https://oapi.dingtalk.com/robot/send?access_token=***"),
        (FEISHU, "https://open.feishu.cn/open-apis/bot/v2/hook/***"),
        ("https://x.example/hook/0123456789abcdef01?lang=zh", "https://x.example/hook/***?lang=***"),
        ("https://api.example/bot0123456789:abcdef/send", "https://api.example/***/***"),
        ("https://me:word@x.example:8443/a?token", "https://x.example:8443/a?token=***"),
        ("https://x.example", "https://x.example"),
        ("https://x.example/", "https://x.example/"),
        ("https://x.example/?&", "https://x.example/?***"),
    ],
)
def test_an_address_is_shown_without_its_tokens(url: str, shown: str) -> None:
    assert masked(url) == shown


def test_tokens_are_found_wherever_they_stand() -> None:
    text = f"url: {DINGTALK}\ntoken: 0123456789abcdef\nrobot: send"
    hidden = "url: https://oapi.dingtalk.com/robot/send?access_token=***\ntoken: ***\nrobot: send"
    assert without_tokens(text, DINGTALK) == hidden
    assert repr(Hook(DINGTALK, "dingtalk", "SEC")) == "Hook(kind='dingtalk')"


def test_message_says_what_matters_and_fits_into_every_chat() -> None:
    ended = Ended(7, "demo", "FAILED", "npu-1", 3723.4, "train", "exit code 1 (out of memory)", 0.123456789)
    assert text_of(ended).splitlines() == [
        "ascend-runner on npu-1: run 7 (demo) FAILED",
        "step train: exit code 1 (out of memory)",
        "time: 1 h 2 min",
        "loss: 0.123457",
    ]
    long = text_of(Ended(7, "demo", "FAILED", "npu-1", 5, "train", "错" * 5000))
    assert len(long.encode()) <= 2048
    assert long.endswith("错")
    assert "time: 5 s" in text_of(Ended(7, "demo", "SUCCEEDED", "npu-1", 5))


def test_what_is_no_text_or_number_can_be_sent_all_the_same() -> None:
    ended = Ended(7, "demo", "FAILED", "npu-1", 5, "train", "\ud800", math.nan)
    _, body = post(Hook("https://x.example/"), ended, 0)
    assert body["loss"] is None
    json.dumps(body, allow_nan=False)
    assert "loss: nan" in text_of(ended)


def test_signatures_change_with_time_and_only_where_a_secret_is() -> None:
    ended = Ended(7, "demo", "SUCCEEDED", "npu-1")
    assert post(Hook(DINGTALK, "dingtalk"), ended, 1.0)[0] == DINGTALK
    one, other = (post(Hook(DINGTALK, "dingtalk", "SEC"), ended, t)[0] for t in (1.0, 2.0))
    assert "&timestamp=1000&sign=" in one
    assert one != other
    assert "sign" not in post(Hook(FEISHU, "feishu"), ended, 1.0)[1]
    assert post(Hook(FEISHU, "feishu", "SEC"), ended, 1.9)[1]["timestamp"] == "1"


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("generic", "no", None),
        ("dingtalk", '{"errcode":0,"errmsg":"ok"}', None),
        ("feishu", '{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}', None),
        ("wecom", "[" * 100_000, "the answer is none of a wecom hook"),
        ("wecom", "[]", "the answer is none of a wecom hook"),
        ("dingtalk", '{"errcode":310000,"errmsg":"keywords not in content"}',
         "errcode 310000: keywords not in content"),
    ],
)  # fmt: skip
def test_an_answer_is_read_as_its_program_writes_it(kind: str, answer: str, said: str | None) -> None:
    assert refusal(kind, answer) == said  # type: ignore[arg-type]


def test_ends_in_words() -> None:
    assert why_ended("FAILED", "exit_code", 3, None) == "exit code 3"
    assert why_ended("FAILED", "signal", None, 9) == "signal 9"
    assert why_ended("LOST", None, None, None) == "LOST"
    assert why_ended("FAILED", "oom", 137, 9) == "oom"
