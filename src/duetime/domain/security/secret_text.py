"""The texts of the secrets that sign callbacks, as Standard Webhooks writes them."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from duetime.domain.limits import MAX_SECRET_BYTES, MIN_SECRET_BYTES, SEED_BYTES
from duetime.domain.security.credentials import SecretKind

PREFIXES = {SecretKind.HMAC: "whsec_", SecretKind.ED25519: "whsk_"}
PUBLIC_PREFIX = "whpk_"


def format_secret(kind: SecretKind, key: bytes) -> str:
    return PREFIXES[kind] + b64encode(key).decode()


def format_public_key(key: bytes) -> str:
    return PUBLIC_PREFIX + b64encode(key).decode()


def parse_secret(text: str) -> tuple[SecretKind, bytes]:
    """The kind and the key: the seed of an Ed25519 key, which the public key may follow.

    Raises ValueError with a message that completes "must be ..." and does not repeat the text.
    """
    for kind, prefix in PREFIXES.items():
        if text.startswith(prefix):
            key = _key_after(prefix, text)
            if kind is SecretKind.ED25519:
                if len(key) not in (SEED_BYTES, 2 * SEED_BYTES):
                    raise ValueError(f"{prefix} and {SEED_BYTES} bytes in base64, not {len(key)}")
                return kind, key[:SEED_BYTES]
            if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
                raise ValueError(
                    f"{prefix} and {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes in base64, not "
                    f"{len(key)}"
                )
            return kind, key
    raise ValueError("whsec_... or whsk_...")


def parse_public_key(text: str) -> bytes:
    """Raises ValueError as `parse_secret` does."""
    key = _key_after(PUBLIC_PREFIX, text)
    if len(key) != SEED_BYTES:
        raise ValueError(f"{PUBLIC_PREFIX} and {SEED_BYTES} bytes in base64, not {len(key)}")
    return key


def _key_after(prefix: str, text: str) -> bytes:
    encoded = text.removeprefix(prefix).rstrip("=")
    try:
        return b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (Base64Error, ValueError):
        raise ValueError(f"{prefix} and base64 after it") from None
