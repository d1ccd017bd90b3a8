"""Secrets that a client sends back as they are shown to it: the stored ones take their place."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from duetime.domain.callback import Callback
from duetime.domain.errors import DuetimeError, InvalidInput, TimerNotPending, TimerUnreadable
from duetime.domain.keys import TimerKey
from duetime.domain.security.redaction import has_redacted, restored_callback
from duetime.domain.timer import Timer, TimerStatus
from duetime.ports.store import TimerStore
from duetime.service.create_requests import NewTimer

Given = TypeVar("Given", NewTimer, Timer)


class StoredSecrets:
    """Puts stored secrets into requests that name an existing timer.

    The secrets are those of the moment the request is read. A request that replaces the timer also
    replaces secrets that others change meanwhile, as it replaces every other change.
    """

    def __init__(self, store: TimerStore) -> None:
        self._store = store

    async def put_into(self, new: NewTimer, *, may_move: bool) -> NewTimer:
        """Raises `InvalidInput` like `restored_callback`, and `TimerUnreadable`."""
        if new.id is None or not has_redacted(new.callback):
            return new
        return await self._restored(new, TimerKey(new.namespace, new.id), may_move=may_move)

    async def put_into_all(
        self, given: Sequence[Given | DuetimeError], *, may_move: bool
    ) -> Sequence[Given | DuetimeError]:
        """The timers with their secrets; in place of each that `put_into` would refuse, its error.

        Timers that exist are not replaced, but one that is deleted after it was read here is
        created anew. So the place matters here, too.
        """
        if not any(_is_redacted(each) for each in given):
            return given
        restored = list(given)
        for index, each in enumerate(given):
            if isinstance(each, DuetimeError) or not _is_redacted(each):
                continue
            try:
                restored[index] = await self._restored(each, _key_of(each), may_move=may_move)
            except (InvalidInput, TimerUnreadable) as error:
                restored[index] = error
        return restored

    async def _restored(self, given: Given, key: TimerKey, *, may_move: bool) -> Given:
        stored = await self._store.get(key)
        kept = None if stored is None else stored.callback
        callback = restored_callback(given.callback, kept, may_move=may_move)
        return replace(given, callback=callback)


def with_secrets_of(before: Timer, callback: Callback, *, may_move: bool) -> Callback:
    """The new callback of a timer that is about to be changed. Raises `InvalidInput` like
    `restored_callback`, or `TimerNotPending`: correcting the values would not help then."""
    try:
        return restored_callback(callback, before.callback, may_move=may_move)
    except InvalidInput:
        if before.status is not TimerStatus.PENDING:
            raise TimerNotPending("update", before.status) from None
        raise


def _is_redacted(given: NewTimer | Timer | DuetimeError) -> bool:
    return not isinstance(given, DuetimeError) and has_redacted(given.callback)


def _key_of(given: NewTimer | Timer) -> TimerKey:
    if isinstance(given, Timer):
        return given.key
    assert given.id is not None
    return TimerKey(given.namespace, given.id)
