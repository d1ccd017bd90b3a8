"""Secrets that an endpoint repeats in its answer are not kept."""

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
