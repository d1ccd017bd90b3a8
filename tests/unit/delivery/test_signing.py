"""Signatures that independent implementations verify, or refuse."""

import base64
import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook, WebhookVerificationError

from duetime.clock import SystemClock
from duetime.delivery.signing import Ed25519Signer, HmacSigner, make_signer, signature_of
from duetime.domain.instants import MICROSECONDS_PER_SECOND
from duetime.domain.security.credentials import SecretKind
from duetime.domain.security.secret_text import format_secret, parse_secret

ROOT = Path(__file__).resolve().parents[3]
ID = "01980000-0000-7000-8000-00000000abcd"
OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 32
BODY = b'{"order": 42, "note": "\xc3\xa4"}'
TOLERANCE = timedelta(minutes=5)
Verify = Callable[[dict[str, str], bytes], bool]


def now_seconds() -> int:
    return SystemClock().now() // MICROSECONDS_PER_SECOND


def headers_of(
    *keys: bytes, id: str = ID, seconds: int | None = None, body: bytes = BODY
) -> dict[str, str]:
    seconds = now_seconds() if seconds is None else seconds
    signature = signature_of([HmacSigner(key) for key in keys], id, seconds, body)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": signature.decode(),
    }


def official(key: bytes) -> Webhook:
    return Webhook(format_secret(SecretKind.HMAC, key))


def test_the_example_of_the_specification() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    content = b'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'
    signed = HmacSigner(key).sign(content)
    assert signed == b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_official_library_accepts_a_genuine_callback() -> None:
    assert official(NEW).verify(BODY, headers_of(NEW)) == json.loads(BODY)


def test_the_official_library_accepts_a_callback_without_a_body() -> None:
    official(NEW).verify(b"", headers_of(NEW, body=b""), json_parse=False)


@pytest.mark.parametrize("known", [OLD, NEW])
def test_during_a_rotation_receivers_of_either_secret_accept(known: bytes) -> None:
    headers = headers_of(OLD, NEW)
    headers["webhook-signature"] += " v1a,AAAA"
    official(known).verify(BODY, headers)


def test_a_callback_signed_with_another_secret_is_refused() -> None:
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        official(NEW).verify(BODY, headers_of(OLD, OTHER))


@pytest.mark.parametrize(
    "altered",
    [
        {"webhook-id": ID.replace("abcd", "abce")},
        {"webhook-timestamp": str(now_seconds() + 60)},
        {"webhook-signature": "v1," + base64.b64encode(bytes(32)).decode()},
        {"webhook-signature": ""},
    ],
)
def test_altered_headers_are_refused(altered: dict[str, str]) -> None:
    with pytest.raises(WebhookVerificationError):
        official(NEW).verify(BODY, headers_of(NEW) | altered)


@pytest.mark.parametrize("body", [BODY + b" ", BODY.replace(b"42", b"43"), b"{}"])
def test_an_altered_body_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        official(NEW).verify(body, headers_of(NEW))


def test_a_replayed_callback_is_refused_by_its_timestamp() -> None:
    seconds = now_seconds() - int(TOLERANCE.total_seconds()) - 2
    with pytest.raises(WebhookVerificationError, match="too old"):
        official(NEW).verify(BODY, headers_of(NEW, seconds=seconds))


def how_to_verifier(first_line: str) -> dict[str, Any]:
    """The names that the how-to's code with this first line defines."""
    page = (ROOT / "docs" / "how-to" / "receive-callbacks.md").read_text(encoding="utf-8")
    begin = re.escape(first_line)
    (code,) = re.findall(rf"^```python\n({begin}.*?)^```", page, re.MULTILINE | re.DOTALL)
    defined: dict[str, Any] = {}
    exec(code.replace("whsec_...", format_secret(SecretKind.HMAC, NEW)), defined)
    return defined


def library_verifier() -> Verify:
    verify = how_to_verifier("from standardwebhooks")["verify"]
    return lambda headers, body: bool(verify(headers, body))


def own_verifier() -> Verify:
    verify, secret = how_to_verifier("import base64")["verify"], format_secret(SecretKind.HMAC, NEW)
    return lambda headers, body: bool(verify(headers, body, secret))


@pytest.mark.parametrize("verifier", [library_verifier, own_verifier])
def test_the_verifiers_of_the_how_to_do_what_it_says(verifier: Callable[[], Verify]) -> None:
    verify = verifier()
    assert verify(headers_of(OLD, NEW), BODY)
    assert not verify(headers_of(OLD, OTHER), BODY)
    assert not verify(headers_of(NEW), BODY + b" ")
    assert not verify(headers_of(NEW, seconds=now_seconds() - 302), BODY)
    genuine = headers_of(NEW)
    for name in genuine:
        assert not verify({key: value for key, value in genuine.items() if key != name}, BODY)
    malformed = (
        "",
        " ",
        "v1",
        "v1,",
        ",",
        "v1,\xe9",
        "\u20ac",
        "\udc80",
        "v1,x,y",
        "-1",
        "1e9",
        "²",
    )
    for value in (*malformed, "9" * 5_000, "nan", "²"):
        for name in genuine:
            assert not verify({**genuine, name: value}, BODY), (name, value)


def test_an_ed25519_signature_is_verified_by_the_public_key_alone() -> None:
    signer = Ed25519Signer(NEW)
    version, _, signature = signer.sign(b"%b.1900000000.%b" % (ID.encode(), BODY)).partition(b",")
    assert version == b"v1a"
    key = Ed25519PublicKey.from_public_bytes(signer.public_key)
    signed = f"{ID}.1900000000.".encode() + BODY
    key.verify(base64.b64decode(signature), signed)
    for forged in (signed + b" ", signed.replace(b".19", b".18"), signed.replace(b"abcd", b"abce")):
        with pytest.raises(InvalidSignature):
            key.verify(base64.b64decode(signature), forged)


@pytest.mark.parametrize("kind", SecretKind)
def test_a_secret_is_read_as_it_was_written(kind: SecretKind) -> None:
    assert parse_secret(format_secret(kind, NEW)) == (kind, NEW)
    assert parse_secret(format_secret(kind, NEW).rstrip("=")) == (kind, NEW)
    assert (make_signer(kind, NEW).public_key is None) is (kind is SecretKind.HMAC)


def test_an_ed25519_key_may_be_followed_by_its_public_key() -> None:
    pair = NEW + Ed25519Signer(NEW).public_key
    assert parse_secret("whsk_" + base64.b64encode(pair).decode()) == (SecretKind.ED25519, NEW)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "whsec_... or whsk_..."),
        ("secret", "whsec_... or whsk_..."),
        ("whsec_", "whsec_ and 24 to 64 bytes in base64, not 0"),
        ("whsec_AAAA", "whsec_ and 24 to 64 bytes in base64, not 3"),
        ("whsec_" + "A" * 100, "whsec_ and 24 to 64 bytes in base64, not 75"),
        ("whsec_no base64!", "whsec_ and base64 after it"),
        ("whsec_äöü", "whsec_ and base64 after it"),
        ("whsec_AAAAA", "whsec_ and base64 after it"),
        ("whsk_" + "A" * 40, "whsk_ and 32 bytes in base64, not 30"),
    ],
)
def test_other_texts_are_no_secrets(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_secret(text)
