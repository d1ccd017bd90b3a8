"""Many timers in one request."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import UNSET, DecodeError, Raw, Struct, json

from duetime.api.http.decoding import MAX_DEPTH, BodyDecoder
from duetime.api.http.nesting import is_deeper_than
from duetime.api.v1.batch_entries import Wanted, decode_wanted, key_told
from duetime.api.v1.errors import item_error
from duetime.api.v1.requests import (
    CHOICES,
    PolicyOf,
    new_timer_of,
    retry_policy_in,
)
from duetime.api.v1.types import MAX_BATCH, BatchBody, BatchResult, CreateBody
from duetime.domain.errors import DuetimeError, InvalidInput, TimerConflict
from duetime.domain.retry import RetryPolicy
from duetime.ports.store import CreateResult, Existence
from duetime.service.create_requests import NewTimer
from duetime.service.namespaces import Namespaces
from duetime.service.timer_service import TimerService

Outcome = CreateResult | DuetimeError

# A member of an enum takes longer to look up than a global.
_CREATED = Existence.CREATED


class _LooseBatch(Struct, frozen=True, forbid_unknown_fields=True):
    timers: list[Raw]


# The timer itself is one level.
_MAX_MEMBER_DEPTH = MAX_DEPTH - 1
# What each level takes at least.
_ARRAY_BYTES = len("[]")
_OBJECT_BYTES = len('{"":}')

_decode_strictly = json.Decoder(BatchBody).decode
_decode_loosely = BodyDecoder(_LooseBatch, CHOICES, limits_depth=False).decode


def decode_batch(body: bytes) -> Sequence[Wanted]:
    """The timers of a batch, or what is wrong with each. Raises `InvalidInput` when it is not a
    batch at all.

    Most batches are faultless and decoded in one go; only in others each timer is looked at.
    """
    wanted: Sequence[Wanted] | None = decode_faultless(_decode_timers, body, arrays_around=1)
    if wanted is None:
        wanted = [decode_wanted(bytes(timer), "timer") for timer in _decode_loosely(body).timers]
    if not 1 <= len(wanted) <= MAX_BATCH:
        raise InvalidInput("timers", f"must have 1 to {MAX_BATCH} entries")
    return wanted


def _decode_timers(body: bytes) -> list[CreateBody]:
    return _decode_strictly(body).timers


def decode_faultless(
    decode: Callable[[bytes], list[CreateBody]], text: bytes, *, arrays_around: int = 0
) -> list[CreateBody] | None:
    """All the timers of a text at once; None when anything is wrong with any of them."""
    try:
        if not text.isascii():
            text.decode()
        timers = decode(text)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    level_bytes = _ARRAY_BYTES if _has_arrays(text, arrays_around) else _OBJECT_BYTES
    return None if _any_is_deep(timers, level_bytes * _MAX_MEMBER_DEPTH) else timers


def _has_arrays(text: bytes, around: int) -> bool:
    """Whether there may be more than those around the timers. Mostly there are none, and to look
    for the next one takes a fraction of the time that counting does."""
    found = -1
    for _ in range(around + 1):
        found = text.find(b"[", found + 1)
        if found < 0:
            return False
    return True


def _any_is_deep(timers: Iterable[CreateBody], never_deep_bytes: int) -> bool:
    """Whether one is nested deeper than allowed, which only what is the client's own can be.

    Most of that is so short that it need not be looked at, and asking here saves a call.
    """
    for timer in timers:
        payload, metadata = timer.payload, timer.metadata
        if payload is not UNSET and len(payload) > never_deep_bytes and _is_deep(payload):
            return True
        if metadata is not UNSET and len(metadata) > never_deep_bytes and _is_deep(metadata):
            return True
    return False


def _is_deep(member: Raw) -> bool:
    return is_deeper_than(bytes(member), _MAX_MEMBER_DEPTH)


class BatchCreation:
    """Creates what can be created of many timers."""

    def __init__(self, service: TimerService, namespaces: Namespaces) -> None:
        self._service = service
        self._namespaces = namespaces

    async def create(self, wanted: Sequence[Wanted]) -> list[Outcome]:
        """One outcome for each, in order. Raises `StoreUnavailable`."""
        unknown: set[str] = set()

        def policy_of(name: str) -> RetryPolicy:
            if self._namespaces.known(name) is None:
                unknown.add(name)
            return retry_policy_in(self._namespaces, name)

        news = _news_of(wanted, policy_of)
        if unknown:
            # What a policy leaves out is the namespace's, which may be new to this node.
            await self._namespaces.refresh()
            news = _news_of(wanted, policy_of)
        return await self._service.create_many(news)


def _news_of(wanted: Iterable[Wanted], policy_of: PolicyOf) -> list[NewTimer | DuetimeError]:
    news: list[NewTimer | DuetimeError] = []
    for body in wanted:
        try:
            news.append(
                new_timer_of(body, policy_of) if isinstance(body, CreateBody) else body.error
            )
        except InvalidInput as error:
            news.append(error)
    return news


def batch_result(wanted: Wanted, outcome: Outcome) -> BatchResult:
    if isinstance(outcome, CreateResult):
        namespace, id = outcome.timer.key
        return BatchResult(
            "created" if outcome.existence is _CREATED else "existing", namespace, id
        )
    status: Literal["conflict", "invalid"] = (
        "conflict" if isinstance(outcome, TimerConflict) else "invalid"
    )
    return BatchResult(status, *key_told(wanted), item_error(outcome))
