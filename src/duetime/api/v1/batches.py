"""Creating many timers in one request."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Literal

from msgspec import UNSET, DecodeError, Raw, Struct, json

from duetime.api.http.decoding import BodyDecoder
from duetime.api.v1.answer_types import BatchResult
from duetime.api.v1.batch_entries import BatchEntry, decode_entry, entry_key
from duetime.api.v1.errors import item_error
from duetime.api.v1.request_types import BatchBody, CreateBody
from duetime.api.v1.requests import CHOICES, PolicyOf, new_timer_of, retry_policy_in
from duetime.domain.errors import DuetimeError, InvalidInput, NamespaceNotFound, TimerConflict
from duetime.domain.json_depth import is_deeper_than
from duetime.domain.limits import MAX_BATCH_TIMERS, MAX_JSON_DEPTH
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.access import Access
from duetime.ports.store import CreateResult, Existence
from duetime.service.create_requests import NewTimer
from duetime.service.namespaces import Namespaces
from duetime.service.timer_service import TimerService
from duetime.service.turns import Turns

Outcome = CreateResult | DuetimeError

# A global is faster to look up than a member of an enum.
_CREATED = Existence.CREATED


class _LooseBatch(Struct, frozen=True, forbid_unknown_fields=True):
    timers: list[Raw]


# The timer itself is one level.
_MAX_MEMBER_DEPTH = MAX_JSON_DEPTH - 1
# The fewest bytes that a level takes.
_ARRAY_BYTES = len("[]")
_OBJECT_BYTES = len('{"":}')

_decode_strictly = json.Decoder(BatchBody).decode
_decode_loosely = BodyDecoder(_LooseBatch, CHOICES, limits_depth=False).decode


async def decode_batch(body: bytes, turns: Turns) -> Sequence[BatchEntry]:
    """The entries of a batch, readable or not. Raises `InvalidInput` if the body is not a batch.

    Most batches have no fault and are decoded in one go. Only the others are decoded one entry at
    a time.
    """
    faultless = await decode_faultless(_decode_timers, body, turns, arrays_around=1)
    timers: Sequence[object] = _decode_loosely(body).timers if faultless is None else faultless
    if not 1 <= len(timers) <= MAX_BATCH_TIMERS:
        raise InvalidInput("timers", f"must have 1 to {MAX_BATCH_TIMERS} entries")
    if faultless is not None:
        return faultless
    return await turns.map(decode_entry, timers, repeat("timer"))


def _decode_timers(body: bytes) -> list[CreateBody]:
    return _decode_strictly(body).timers


async def decode_faultless(
    decode: Callable[[bytes], list[CreateBody]],
    text: bytes,
    turns: Turns,
    *,
    arrays_around: int = 0,
) -> list[CreateBody] | None:
    """All timers of a text at once, or None if anything is wrong with any of them."""
    try:
        if not text.isascii():
            text.decode()
        timers = decode(text)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    level_bytes = _ARRAY_BYTES if _has_arrays(text, arrays_around) else _OBJECT_BYTES
    long = list(_longer_members(timers, level_bytes * _MAX_MEMBER_DEPTH))
    return None if any(await turns.map(_is_deep, long)) else timers


def _has_arrays(text: bytes, around: int) -> bool:
    """Whether the text may have arrays besides those around the timers.

    Most texts have none, and searching for the next one is much faster than counting them all.
    """
    found = -1
    for _ in range(around + 1):
        found = text.find(b"[", found + 1)
        if found < 0:
            return False
    return True


def _longer_members(timers: Iterable[CreateBody], never_deep_bytes: int) -> Iterator[Raw]:
    """The payloads and metadata that are long enough to be too deep; nothing else can be.

    Most are too short. Comparing the length here saves a call for each.
    """
    for timer in timers:
        payload, metadata = timer.payload, timer.metadata
        if payload is not UNSET and len(payload) > never_deep_bytes:
            yield payload
        if metadata is not UNSET and len(metadata) > never_deep_bytes:
            yield metadata


def _is_deep(member: Raw) -> bool:
    return is_deeper_than(bytes(member), _MAX_MEMBER_DEPTH)


class BatchCreation:
    """Creates the entries of a batch, each by itself."""

    def __init__(self, service: TimerService, namespaces: Namespaces) -> None:
        self.turns = service.turns
        self._service = service
        self._namespaces = namespaces

    async def create(self, entries: Sequence[BatchEntry], access: Access) -> list[Outcome]:
        """One outcome for each entry, in order: namespaces out of the caller's sight do not exist.
        Raises `StoreUnavailable`."""
        unknown: set[str] = set()

        def policy_of(name: str) -> RetryPolicy:
            if not access.sees(name):
                return RetryPolicy()
            if self._namespaces.known(name) is None:
                unknown.add(name)
            return retry_policy_in(self._namespaces, name)

        timers = await self.turns.map(_new_timer_or_error, entries, repeat(policy_of))
        if unknown:
            # Members absent from a policy are the namespace's, which may be new to this node.
            await self._namespaces.look_up(unknown)
            timers = await self.turns.map(_new_timer_or_error, entries, repeat(policy_of))
        if access.namespaces is not None:
            timers = [_if_visible(each, access) for each in timers]
        return await self._service.create_many(timers, may_move_secrets=access.is_admin)


def _new_timer_or_error(entry: BatchEntry, policy_of: PolicyOf) -> NewTimer | DuetimeError:
    try:
        return new_timer_of(entry, policy_of) if isinstance(entry, CreateBody) else entry.error
    except InvalidInput as error:
        return error


def _if_visible(new: NewTimer | DuetimeError, access: Access) -> NewTimer | DuetimeError:
    if isinstance(new, NewTimer) and not access.sees(new.namespace):
        return NamespaceNotFound(new.namespace)
    return new


def batch_result(entry: BatchEntry, outcome: Outcome) -> BatchResult:
    if isinstance(outcome, CreateResult):
        namespace, id = outcome.timer.key
        return BatchResult(
            "created" if outcome.existence is _CREATED else "existing", namespace, id
        )
    status: Literal["conflict", "invalid"] = (
        "conflict" if isinstance(outcome, TimerConflict) else "invalid"
    )
    return BatchResult(status, *entry_key(entry), item_error(outcome))
