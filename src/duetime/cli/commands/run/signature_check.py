"""The check of signatures in `duetime listen`: what a receiver does, in a few lines."""

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator, Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.security.credentials import SecretKind
from duetime.domain.security.secret_text import (
    PREFIXES,
    PUBLIC_PREFIX,
    parse_public_key,
    parse_secret,
)

TOLERANCE_SECONDS = 5 * 60
"""Distance of a callback's timestamp from now; a larger one is the sign of a replay."""

MAX_SIGNATURES = 32
"""Signatures of one callback that are looked at."""


class SignatureCheck:
    """Accepts callbacks that one of the secrets signed a moment ago. A secret is `whsec_...`, or a
    public key `whpk_...`, or the private one of it. Raises ValueError for any other text, with a
    message that completes "must be ..."."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._keys: list[bytes] = []
        self._public_keys: list[Ed25519PublicKey] = []
        for text in secrets:
            if text.startswith(PUBLIC_PREFIX):
                key = Ed25519PublicKey.from_public_bytes(parse_public_key(text))
                self._public_keys.append(key)
                continue
            if not text.startswith(tuple(PREFIXES.values())):
                raise ValueError("whsec_... or whpk_...")
            kind, secret = parse_secret(text)
            if kind is SecretKind.HMAC:
                self._keys.append(secret)
            else:
                private = Ed25519PrivateKey.from_private_bytes(secret)
                self._public_keys.append(private.public_key())

    def problem(self, headers: Mapping[str, str], body: bytes, now: Instant) -> str | None:
        """Why the callback is not genuine; None if it is. The names of headers are in lower
        case."""
        id, timestamp = headers.get("webhook-id"), headers.get("webhook-timestamp")
        signatures = headers.get("webhook-signature")
        if not id or not timestamp or not signatures:
            return "it is not signed"
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
            return "its webhook-timestamp is no number of seconds"
        age_seconds = now // MICROSECONDS_PER_SECOND - int(timestamp)
        if abs(age_seconds) > TOLERANCE_SECONDS:
            when = "old" if age_seconds > 0 else "ahead of this clock"
            return f"its timestamp is {abs(age_seconds):,} s {when}, which may be a replay"
        content = f"{id}.{timestamp}.".encode("latin-1") + body
        if any(self._verifies(*each, content) for each in _parsed(signatures)):
            return None
        return "no signature matches: another secret signed it, or it was altered"

    def _verifies(self, version: str, signature: bytes, content: bytes) -> bool:
        if version == "v1":
            return any(
                hmac.compare_digest(hmac.digest(key, content, "sha256"), signature)
                for key in self._keys
            )
        return version == "v1a" and any(
            _is_signed_by(key, signature, content) for key in self._public_keys
        )


def _parsed(signatures: str) -> Iterator[tuple[str, bytes]]:
    for each in signatures.split(" ")[:MAX_SIGNATURES]:
        version, _, encoded = each.partition(",")
        try:
            yield version, b64decode(encoded, validate=True)
        except (Base64Error, ValueError):
            continue


def _is_signed_by(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True
