"""How an idempotency key becomes a timer's id, and how a repeat is recognised.

The id follows from the key, so the uniqueness of ids makes keys unique, in every store.
"""

from hashlib import blake2b

from msgspec import UNSET, DecodeError, Raw, json
from msgspec.structs import replace

from duetime.domain.callback import Callback
from duetime.domain.keys import derived_uuid7
from duetime.service.create_requests import NewTimer

# Numbers with a point or an exponent keep their text: different texts may be equal as floats.
_DECODER = json.Decoder(float_hook=lambda text: Raw(text.encode()))
_ENCODER = json.Encoder(order="deterministic")


def id_of_idempotency_key(idempotency_key: str) -> str:
    """The UUID that follows from the key. Its bits of time are zero, which no generated id has."""
    return derived_uuid7(idempotency_key)


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
