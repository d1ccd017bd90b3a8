"""Secrets that an endpoint repeats in its answer are not kept."""

import sys
from base64 import b64encode

import pytest

from duetime.domain.callback import BusCallback, HttpCallback
from duetime.domain.security.echoes import has_secrets, without_echoes

SECRET = 's3cr/t&m"rk'
BASIC = b64encode(b"user:pass-word").decode()
CALLBACK = HttpCallback(
    url="https://caller:p%40ss-w0rd@example.com/",
    headers={
        "Authorization": f"Bearer {SECRET}",
        "Proxy-Authorization": f"Basic {BASIC}",
        "Cookie": "a=1; session=c00kie-value",
        "X-Pin-Token": "123",
        "X-Tag": "harmless",
    },
)


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (f"no Bearer {SECRET} here", "no [redacted] here"),
        (f"token {SECRET} expired", "token [redacted] expired"),
        ('{"got":"s3cr/t&m\\"rk"}', '{"got":"[redacted]"}'),
        ('{"got":"s3cr\\/t&m\\"rk"}', '{"got":"[redacted]"}'),
        ("<b>s3cr/t&amp;m&quot;rk</b>", "<b>[redacted]</b>"),
        ("?token=s3cr%2Ft%26m%22rk", "?token=[redacted]"),
        (f"bad {BASIC}", "bad [redacted]"),
        ("wrong pass-word", "wrong [redacted]"),
        ("session c00kie-value is unknown", "session [redacted] is unknown"),
        ("p@ss-w0rd and p%40ss-w0rd", "[redacted] and [redacted]"),
        ("cut off: s3cr/t&", "cut off: [redacted]"),
        ("cut off: s3cr/t…", "cut off: [redacted]…"),
        ("harmless 123 for caller", "harmless 123 for caller"),
    ],
)
def test_no_spelling_of_a_secret_is_kept(answer: str, kept: str) -> None:
    assert without_echoes(answer, CALLBACK) == kept


def test_callbacks_that_have_something_to_hide() -> None:
    assert has_secrets(CALLBACK)
    assert has_secrets(HttpCallback(url="https://token@example.com/"))
    assert not has_secrets(HttpCallback(url="https://example.com/", headers={"X-Tag": "a"}))
    assert not has_secrets(BusCallback())


@pytest.mark.parametrize(
    ("cookie", "answer", "kept"),
    [
        # Many secrets, long ones, and places that begin like one.
        (";".join(f"={number:04}" for number in range(2_700)), "a" * 4_000, "[redacted]"),
        (";".join(f"={number:04}&" for number in range(20)), "a" * 4_000, "a" * 4_000),
        (";".join("=" + f"/&{number}" * 300 for number in range(20)), "/&" * 2_000, "[redacted]"),
        ('/&"<' * 750, '/&"<' * 700 + ".", "[redacted]"),
        ("a" * 100 + "b", "a" * 4_000, "[redacted]"),
        ("a" * 2_000 + "b", "a" * 4_000, "[redacted]"),
    ],
)
def test_no_answer_makes_the_search_long(cookie: str, answer: str, kept: str) -> None:
    callback = HttpCallback(url="https://example.com/", headers={"Cookie": cookie})
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        found = without_echoes(answer, callback)
    finally:
        sys.setprofile(None)
    assert found == kept
    assert calls < 8_000


def test_an_answer_that_is_hidden_as_a_whole_leaves_its_status() -> None:
    cookie = "; ".join(f"name{number}=value{number}" for number in range(100))
    callback = HttpCallback(url="https://example.com/", headers={"Cookie": cookie})
    assert without_echoes("HTTP 500: no value7 here", callback) == "HTTP 500: [redacted]"
    assert without_echoes("HTTP 5007: no value7 here", callback) == "[redacted]"


def test_secrets_that_overlap_are_hidden_together() -> None:
    headers = {"X-Token": "abcd-efgh", "X-Key": "efgh-ijkl"}
    callback = HttpCallback(url="https://example.com/", headers=headers)
    assert without_echoes("no abcd-efgh-ijkl here", callback) == "no [redacted] here"
