"""Many timers in one request."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from msgspec import UNSET, DecodeError, Raw, Struct, json

from duetime.api.decoding import MAX_DEPTH, BodyDecoder
from duetime.api.nesting import is_deeper_than
from duetime.api.v1.errors import item_error
from duetime.api.v1.requests import CHOICES, decode_create, new_timer_of, retry_policy_in
from duetime.api.v1.types import MAX_BATCH, BatchBody, BatchResult, CreateBody
from duetime.domain.errors import DuetimeError, InvalidInput, TimerConflict
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.store import CreateResult, Existence
from duetime.service.namespaces import Namespaces
from duetime.service.new_timer import NewTimer
from duetime.service.timer_service import TimerService

Wanted = CreateBody | InvalidInput
Outcome = CreateResult | DuetimeError


class _LooseBatch(Struct, frozen=True, forbid_unknown_fields=True):
    timers: list[Raw]


_decode_all = json.Decoder(BatchBody).decode
_decode_loosely = BodyDecoder(_LooseBatch, CHOICES, limits_depth=False).decode


def decode_batch(body: bytes) -> Sequence[Wanted]:
    """The timers of a batch, or what is wrong with each. Raises `InvalidInput` when it is not a
    batch at all.

    Most batches are faultless and decoded in one go; only in others each timer is looked at.
    """
    wanted: Sequence[Wanted]
    try:
        if not body.isascii():
            body.decode()
        wanted = _decode_all(body).timers
        # The batch itself is two levels more.
        is_faultless = not is_deeper_than(body, MAX_DEPTH + 2)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        is_faultless = False
    if not is_faultless:
        wanted = [decode_one(bytes(timer)) for timer in _decode_loosely(body).timers]
    if not 1 <= len(wanted) <= MAX_BATCH:
        raise InvalidInput("timers", f"must have 1 to {MAX_BATCH} entries")
    return wanted


def decode_one(body: bytes) -> Wanted:
    try:
        return decode_create(body)
    except InvalidInput as error:
        return error


class BatchCreation:
    """Creates what can be created of many timers."""

    def __init__(self, service: TimerService, namespaces: Namespaces) -> None:
        self._service = service
        self._namespaces = namespaces

    async def create(self, wanted: Sequence[Wanted]) -> list[Outcome]:
        """One outcome for each, in order. Raises `StoreUnavailable`."""
        await self._learn_namespaces(wanted)
        policy_of = partial(retry_policy_in, self._namespaces)
        outcomes: list[Outcome | None] = []
        news: list[NewTimer] = []
        for body in wanted:
            if isinstance(body, InvalidInput):
                outcomes.append(body)
                continue
            try:
                news.append(new_timer_of(body, policy_of))
                outcomes.append(None)
            except InvalidInput as error:
                outcomes.append(error)
        created = await self._service.create_many(news)
        if len(news) == len(wanted):
            return created
        rest = iter(created)
        return [next(rest) if outcome is None else outcome for outcome in outcomes]

    async def _learn_namespaces(self, wanted: Sequence[Wanted]) -> None:
        """What a policy leaves out is the namespace's, which may be new to this node."""
        for body in wanted:
            if (
                isinstance(body, CreateBody)
                and body.retry_policy is not None
                and self._namespaces.known(_namespace_of(body)) is None
            ):
                await self._namespaces.refresh()
                return


def batch_result(wanted: Wanted, outcome: Outcome) -> BatchResult:
    if isinstance(outcome, CreateResult):
        key = outcome.timer.key
        if outcome.existence is Existence.CREATED:
            return BatchResult("created", key.namespace, key.id)
        return BatchResult("existing", key.namespace, key.id)
    status: Literal["conflict", "invalid"] = (
        "conflict" if isinstance(outcome, TimerConflict) else "invalid"
    )
    error = item_error(outcome)
    if isinstance(wanted, CreateBody):
        return BatchResult(status, _namespace_of(wanted), wanted.id, error)
    return BatchResult(status, error=error)


def _namespace_of(body: CreateBody) -> str:
    group_id = DEFAULT_NAMESPACE if body.group_id is UNSET else body.group_id
    return group_id if body.namespace is UNSET else body.namespace
