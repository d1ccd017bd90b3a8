"""The verifier of `duetime listen` agrees with the signers and with the official library."""

from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook
from typer.testing import CliRunner

from duetime.cli.commands.run.signature_check import TOLERANCE_SECONDS, SignatureCheck
from duetime.cli.main import command_line
from duetime.clock import SystemClock
from duetime.delivery.signing import Ed25519Signer, HmacSigner, make_signer, signature_of
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.security.credentials import SecretKind
from duetime.domain.security.secret_text import format_public_key, format_secret

NOW = Instant(1_893_456_000 * MICROSECONDS_PER_SECOND)
ID = "01980000-0000-7000-8000-00000000abcd"
KEY, OTHER = b"k" * 32, b"o" * 32
BODY = b'{"n": 1}'
HMAC = format_secret(SecretKind.HMAC, KEY)
PRIVATE = format_secret(SecretKind.ED25519, KEY)
PUBLIC = format_public_key(Ed25519Signer(KEY).public_key)
NO_MATCH = "no signature matches: another secret signed it, or it was altered"


def signed(kind: SecretKind, key: bytes = KEY, age_seconds: int = 0) -> dict[str, str]:
    seconds = NOW // MICROSECONDS_PER_SECOND - age_seconds
    return {
        "webhook-id": ID,
        "webhook-timestamp": str(seconds),
        "webhook-signature": signature_of([make_signer(kind, key)], ID, seconds, BODY).decode(),
    }


@pytest.mark.parametrize(
    ("secret", "kind"),
    [
        (HMAC, SecretKind.HMAC),
        (PUBLIC, SecretKind.ED25519),
        (PRIVATE, SecretKind.ED25519),
    ],
)
class TestEveryKind:
    def test_genuine_callbacks_are_verified(self, secret: str, kind: SecretKind) -> None:
        other = format_secret(SecretKind.HMAC, OTHER)
        assert SignatureCheck([other, secret]).problem(signed(kind), BODY, NOW) is None

    def test_forged_and_altered_callbacks_are_not(self, secret: str, kind: SecretKind) -> None:
        check = SignatureCheck([secret])
        assert check.problem(signed(kind, OTHER), BODY, NOW) == NO_MATCH
        assert check.problem(signed(kind), BODY + b" ", NOW) == NO_MATCH
        for name, value in {
            "webhook-id": "another",
            "webhook-timestamp": str(NOW // MICROSECONDS_PER_SECOND + 1),
            "webhook-signature": "v1,AAAA v1a,AAAA v2,AAAA nonsense ,, v1,@",
        }.items():
            assert check.problem(signed(kind) | {name: value}, BODY, NOW) == NO_MATCH

    def test_replayed_callbacks_are_not(self, secret: str, kind: SecretKind) -> None:
        check = SignatureCheck([secret])
        for age_seconds in (-TOLERANCE_SECONDS, TOLERANCE_SECONDS):
            assert check.problem(signed(kind, age_seconds=age_seconds), BODY, NOW) is None
        old = check.problem(signed(kind, age_seconds=301), BODY, NOW)
        assert old == "its timestamp is 301 s old, which may be a replay"
        early = check.problem(signed(kind, age_seconds=-301), BODY, NOW)
        assert early == "its timestamp is 301 s ahead of this clock, which may be a replay"


@pytest.mark.parametrize("absent", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_callback_without_a_signature_is_not_verified(absent: str) -> None:
    headers = signed(SecretKind.HMAC)
    del headers[absent]
    assert SignatureCheck([HMAC]).problem(headers, BODY, NOW) == "it is not signed"


@pytest.mark.parametrize("timestamp", ["soon", "1.5", "-1", "1" * 400, "\u0661"])
def test_a_timestamp_that_is_no_number_is_a_problem(timestamp: str) -> None:
    headers = signed(SecretKind.HMAC) | {"webhook-timestamp": timestamp}
    problem = SignatureCheck([HMAC]).problem(headers, BODY, NOW)
    assert problem == "its webhook-timestamp is no number of seconds"


def test_only_signatures_of_the_first_places_count() -> None:
    headers = signed(SecretKind.HMAC)
    headers["webhook-signature"] = "v1,AAAA " * 32 + headers["webhook-signature"]
    assert SignatureCheck([HMAC]).problem(headers, BODY, NOW) == NO_MATCH


def test_callbacks_that_the_official_library_signed_are_verified() -> None:
    now = SystemClock().now()
    moment = datetime.fromtimestamp(now // MICROSECONDS_PER_SECOND, UTC) - timedelta(seconds=1)
    headers = {
        "webhook-id": ID,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(HMAC).sign(ID, moment, BODY.decode()),
    }
    assert SignatureCheck([HMAC]).problem(headers, BODY, now) is None
    assert (
        signature_of([HmacSigner(KEY)], ID, int(moment.timestamp()), BODY)
        == headers["webhook-signature"].encode()
    )


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("", "whsec_... or whpk_..."),
        ("secret", "whsec_... or whpk_..."),
        ("whsec_AAAA", "whsec_ and 24 to 64 bytes in base64, not 3"),
        ("whpk_AAAA", "whpk_ and 32 bytes in base64, not 3"),
        ("whpk_@", "whpk_ and base64 after it"),
        ("whsk_", "whsk_ and 32 bytes in base64, not 0"),
    ],
)
def test_other_texts_are_refused(text: str, needed: str) -> None:
    result = CliRunner().invoke(command_line(), ["listen", "--secret", text])
    assert (result.exit_code, result.stderr) == (2, f"--secret: must be {needed}\n")
