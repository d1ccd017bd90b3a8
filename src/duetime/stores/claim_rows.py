"""Claims as JSON text: a database writes a batch as one text, which is decoded in one go."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Claim
from duetime.stores.unreadable_rows import UNREADABLE_ROW, log_unreadable

MAX_BATCH_BYTES = 16 * 2**20
"""Size of the callbacks in a batch at which the batch ends: bytes bound its memory, not timers."""

MAX_SHARED_BYTES = 2**20
"""Size up to which the payloads of a batch are views of its text. In a larger batch each payload is
a copy, so that a single claim that is held for long does not keep the whole text."""


class _ClaimRow(Claim, frozen=True, array_like=True):
    """A claim as an array in the order of its fields."""


_decode_claim = msgspec.json.Decoder(_ClaimRow).decode
_decode_claims = msgspec.json.Decoder(list[_ClaimRow]).decode


def claims_of(text: str | bytes | None) -> list[Claim]:
    """The claims of a JSON array of claims; none for None. Raises UNREADABLE_ROW if one of them
    cannot be read; then `readable_claims` sorts it out."""
    if text is None:
        return []
    claims = _decode_claims(text)
    if len(text) > MAX_SHARED_BYTES:
        return [_with_own_payload(claim) for claim in claims]
    return list(claims)


def readable_claims(rows: Iterable[Sequence[Any]]) -> Iterator[Claim]:
    """The claims of rows of namespace, id, instant of creation and JSON text, each decoded on its
    own.

    A claim that this release cannot read, perhaps one of a later release, is logged and left
    executing. It does not keep the others from firing, and the audit shows it.
    """
    for namespace, id, created_at, text in rows:
        try:
            yield _decode_claim(text)
        except UNREADABLE_ROW as error:
            log_unreadable(TimerKey(namespace, id), Instant(created_at), error)


def unreadable_claims(named: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The name of each claim whose JSON text cannot be read, with the reason."""
    for name, text in named:
        try:
            _decode_claim(text)
        except UNREADABLE_ROW as error:
            yield f"{name}: {error}"


def _with_own_payload(claim: _ClaimRow) -> _ClaimRow:
    callback = claim.callback
    if callback.payload is UNSET:
        return claim
    return replace(claim, callback=replace(callback, payload=callback.payload.copy()))
