"""Secrets that a client sends back as they are shown to it: the stored ones take their place."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from duetime.domain.errors import DuetimeError, InvalidInput, TimerUnreadable
from duetime.domain.keys import TimerKey
from duetime.domain.security.redaction import has_redacted, restored_callback
from duetime.domain.timer import Timer
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

    async def put_into(self, new: NewTimer) -> NewTimer:
        """Raises `InvalidInput` where no secret is stored, and `TimerUnreadable`."""
        if new.id is None or not has_redacted(new.callback):
            return new
        return await self._restored(new, TimerKey(new.namespace, new.id))

    async def put_into_all(
        self, given: Sequence[Given | DuetimeError]
    ) -> Sequence[Given | DuetimeError]:
        """The timers with their secrets; an error in place of each that lacks one."""
        if not any(_is_redacted(each) for each in given):
            return given
        restored = list(given)
        for index, each in enumerate(given):
            if isinstance(each, DuetimeError) or not _is_redacted(each):
                continue
            try:
                restored[index] = await self._restored(each, _key_of(each))
            except (InvalidInput, TimerUnreadable) as error:
                restored[index] = error
        return restored

    async def _restored(self, given: Given, key: TimerKey) -> Given:
        stored = await self._store.get(key)
        callback = restored_callback(given.callback, None if stored is None else stored.callback)
        return replace(given, callback=callback)


def _is_redacted(given: NewTimer | Timer | DuetimeError) -> bool:
    return not isinstance(given, DuetimeError) and has_redacted(given.callback)


def _key_of(given: NewTimer | Timer) -> TimerKey:
    if isinstance(given, Timer):
        return given.key
    assert given.id is not None
    return TimerKey(given.namespace, given.id)
