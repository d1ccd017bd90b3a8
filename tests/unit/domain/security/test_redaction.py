"""Secrets in callbacks: shown as `[redacted]`, and kept when that comes back."""

import pytest

from duetime.domain.callback import BusCallback, Callback, HttpCallback, NatsCallback
from duetime.domain.errors import InvalidInput
from duetime.domain.security.redaction import (
    REDACTED,
    has_redacted,
    is_secret,
    refuse_redacted,
    restored_callback,
    shown_callback,
    shown_url,
)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "PROXY-AUTHORIZATION", "cookie", "Set-Cookie", "X-Api-Key", "x-auth-token",
        "Client-Secret", "X-Password-2", "X-Hub-Signature-256", "my_key", "Idempotency-Key",
        "X-Forwarded-Authorization", "X-Amz-Authentication", "X-Credentials", "db-passwd", "X-JWT",
        "Passphrase", "X-Session-Id", "X-Auth", "x-pwd", "X-Pass",
    ],
)  # fmt: skip
def test_names_that_say_that_the_value_is_a_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    ["X-Tag", "Content-Type", "Author", "X-Author-Id", "Cookies-Left", "X-Pass-Through", "Passage"],
)
def test_other_names(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@example.com/a?b=c@d", f"https://user:{REDACTED}@example.com/a?b=c@d"),
        ("https://user:p:w@example.com", f"https://user:{REDACTED}@example.com"),
        ("https://:pw@example.com/", f"https://:{REDACTED}@example.com/"),
        ("https://token@example.com/", f"https://{REDACTED}@example.com/"),
        ("https://token:@example.com/", f"https://{REDACTED}@example.com/"),
        ("https://example.com/users/@me", "https://example.com/users/@me"),
        ("https://example.com?to=a:b@c", "https://example.com?to=a:b@c"),
        ("https://example.com#a:b@c", "https://example.com#a:b@c"),
        ("https://@example.com/", "https://@example.com/"),
    ],
)
def test_the_password_in_a_url_is_a_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_only_secrets_are_hidden() -> None:
    callback = HttpCallback(
        url="https://u:pw@example.com/", headers={"X-Tag": "a", "Authorization": "Bearer b"}
    )
    assert shown_callback(callback) == HttpCallback(
        url=f"https://u:{REDACTED}@example.com/", headers={"X-Tag": "a", "Authorization": REDACTED}
    )
    plain = HttpCallback(url="https://example.com/", headers={"X-Tag": "a"})
    assert shown_callback(plain) is plain


@pytest.mark.parametrize(
    "stored",
    [
        HttpCallback(url="https://u:p\\1w@example.com/", headers={"authorization": "Bearer b"}),
        HttpCallback(url="https://token@example.com/", headers={"X-Tag": "a", "X-Key": "k"}),
        NatsCallback(topic="a.b", headers={"X-Token": "t", "X-Tag": REDACTED}),
        BusCallback(),
    ],
)
def test_a_callback_that_comes_back_as_shown_is_the_stored_one(stored: Callback) -> None:
    assert restored_callback(shown_callback(stored), stored) == stored


def test_names_match_in_any_case_and_other_values_are_the_new_ones() -> None:
    stored = HttpCallback(url="https://a/", headers={"AUTHORIZATION": "old", "X-Token": "gone"})
    given = HttpCallback(url="https://b/", headers={"authorization": REDACTED, "X-Key": "new"})
    assert restored_callback(given, stored) == HttpCallback(
        url="https://b/", headers={"authorization": "old", "X-Key": "new"}
    )


@pytest.mark.parametrize("stored", [None, HttpCallback(url="https://u@a/", headers={"X-Tag": "a"})])
@pytest.mark.parametrize(
    ("given", "field"),
    [
        (
            HttpCallback(url="https://a/", headers={"X-Tag": "a", "X-Key": REDACTED}),
            "callback.headers.X-Key",
        ),
        (NatsCallback(topic="a", headers={"X-Key": REDACTED}), "callback.headers.X-Key"),
        (HttpCallback(url=f"https://user:{REDACTED}@a/"), "callback.url"),
    ],
)
def test_a_shown_value_without_a_stored_one_is_refused(
    given: Callback, field: str, stored: Callback | None
) -> None:
    assert has_redacted(given)
    with pytest.raises(InvalidInput, match="--with-secrets") as refused:
        restored_callback(given, stored)
    assert refused.value.field == field


def test_the_text_is_allowed_where_nothing_is_hidden() -> None:
    refuse_redacted(HttpCallback(url=f"https://a/?{REDACTED}@", headers={"X-Tag": REDACTED}))


@pytest.mark.parametrize("user", [REDACTED, f"user:{REDACTED}"])
def test_a_harmless_header_with_the_text_does_not_cover_for_the_url(user: str) -> None:
    given = HttpCallback(url=f"https://{user}@example.com/", headers={"X-Tag": REDACTED})
    with pytest.raises(InvalidInput) as refused:
        refuse_redacted(given)
    assert refused.value.field == "callback.url"
    stored = HttpCallback(url="https://user:pass-word@example.com/")
    kept = restored_callback(given, stored)
    assert kept == HttpCallback(url=stored.url, headers={"X-Tag": REDACTED})


def test_names_that_differ_in_their_case_only_keep_their_own_values() -> None:
    headers = {"X-Token": "first", "x-token": "second", "X-TOKEN": "third"}
    stored = HttpCallback(url="https://a/", headers=headers)
    assert restored_callback(shown_callback(stored), stored) == stored
