"""How an idempotency key becomes a timer's id, and how a repeat is recognised.

The id follows from the key, so the uniqueness of ids makes keys unique, in every store.
"""

from hashlib import blake2b
from uuid import UUID

from msgspec import UNSET, DecodeError, Raw, json
from msgspec.structs import replace

from duetime.domain.callback import Callback
from duetime.service.create_requests import NewTimer

_VERSION_7 = 0x7 << 76
_VARIANT = 0b10 << 62
_LOW_62_BITS = (1 << 62) - 1

# Numbers with a point or an exponent keep their text: different texts may be equal as floats.
_DECODER = json.Decoder(float_hook=lambda text: Raw(text.encode()))
_ENCODER = json.Encoder(order="deterministic")


def id_of_idempotency_key(idempotency_key: str) -> str:
    """A UUID shaped like version 7: its 48 bits of time are zero, which no generated id has,
    and the other 74 come from BLAKE2b (digest size 16) of the key in UTF-8."""
    digest = int.from_bytes(blake2b(idempotency_key.encode(), digest_size=16).digest(), "big")
    random_a = (digest >> 64) & 0xFFF
    return str(UUID(int=_VERSION_7 | random_a << 64 | _VARIANT | digest & _LOW_62_BITS))


def fingerprint_of(new: NewTimer) -> bytes:
    """Sixteen bytes that are equal for requests of equal meaning.

    White space and the order of members in the JSON values do not matter. A delay counts as it
    was given, so it never equals an instant.
    """
    content = [
        new.execute_at,
        with_canonical_payload(new.callback),
        None if new.metadata is None else canonical(new.metadata),
        new.retry_policy,
        new.idempotency_key,
    ]
    return blake2b(_ENCODER.encode(content), digest_size=16).digest()


def with_canonical_payload(callback: Callback) -> Callback:
    """The callback in a form in which equal meanings compare equal."""
    if callback.payload is UNSET:
        return callback
    return replace(callback, payload=canonical(callback.payload))


def canonical(value: Raw) -> Raw:
    """The same text for JSON values of the same meaning."""
    try:
        return Raw(_ENCODER.encode(_DECODER.decode(value)))
    except (DecodeError, ValueError, RecursionError):
        # An integer of thousands of digits is valid JSON, but Python refuses to read it.
        return value
