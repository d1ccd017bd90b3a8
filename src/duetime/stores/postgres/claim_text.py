"""Claims as JSON text, written by the database and read in one go."""

from collections.abc import Iterable, Iterator

import msgspec
import structlog
from msgspec import UNSET
from msgspec.structs import replace

from duetime.domain.callback import BusCallback
from duetime.domain.timer import Claim

_log = structlog.get_logger()

MAX_SHARED_BYTES = 2**20
"""Payloads are views of the batch's text. In a larger one each gets its own copy, so that a
single claim that is held for long does not keep all of it."""

CLAIM_AS_TEXT = """'[' || concat_ws(',',
    to_json(namespace), to_json(id), shard, epoch, created_at, claim_number, attempt, failures,
    execute_at, due_at, claimed_at, to_json(delivery_id), callback, coalesce(retry_policy, 'null'),
    coalesce(to_json(correlation_id)::text, 'null'), coalesce(attempts, '[]')) || ']'"""
"""An SQL expression for a row of `executing_timers` as an array in the order of a claim's fields.

The stored JSON is put together as text: PostgreSQL's JSON types would read and reword the
client's payload."""


class _ClaimRow(Claim, frozen=True, array_like=True):
    """A claim as CLAIM_AS_TEXT writes it."""


_decode_claim = msgspec.json.Decoder(_ClaimRow).decode
_decode_claims = msgspec.json.Decoder(list[_ClaimRow]).decode
_decode_rows = msgspec.json.Decoder(list[msgspec.Raw]).decode


def readable(texts: Iterable[str]) -> Iterator[Claim]:
    """The claims of CLAIM_AS_TEXT, each read on its own.

    One that this release cannot read, as a later one may have written it, stays as it is for a
    node that can: it must not keep the others from firing.
    """
    for text in texts:
        try:
            yield _decode_claim(text)
        except msgspec.DecodeError as error:
            _log.error("claim.unreadable", error=str(error), claim=text[:200])


def claims_of(text: str | None) -> list[Claim]:
    """The claims of a JSON array of CLAIM_AS_TEXT; None for none."""
    if text is None:
        return []
    try:
        claims = _decode_claims(text)
    except msgspec.DecodeError:
        return list(readable(bytes(raw).decode() for raw in _decode_rows(text)))
    if len(text) > MAX_SHARED_BYTES:
        return [_with_own_payload(claim) for claim in claims]
    return list(claims)


def _with_own_payload(claim: _ClaimRow) -> _ClaimRow:
    callback = claim.callback
    if isinstance(callback, BusCallback) or callback.payload is UNSET:
        return claim
    return replace(claim, callback=replace(callback, payload=callback.payload.copy()))
