"""The timer store as services see it: the store itself has callbacks with sealed contents."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import structlog
from msgspec import UNSET
from msgspec.structs import replace

from duetime.domain.errors import CannotUnseal, TimerSealed
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.timer import Timer
from duetime.domain.transitions import Change
from duetime.ports.store import (
    ConditionalResult,
    CreateRequest,
    CreateResult,
    Existence,
    Page,
    PageQuery,
    Position,
    ScanEntry,
    ScanQuery,
    TimerStore,
)
from duetime.sealing.callbacks import CallbackSealer
from duetime.service.turns import Turns

S = TypeVar("S", bound=TimerStore)

MAX_LOGGED = 100
"""Keys whose absence is logged."""

_log = structlog.get_logger()


def with_sealed_contents(store: S, callbacks: CallbackSealer, turns: Turns) -> S:
    """The store, which keeps the contents of callbacks sealed if there are keys. Lists of timers
    are sealed and unsealed in turns.

    Contents that cannot be unsealed make a timer unreadable, as `TimerStore` describes that; but
    conditional writes take place, and answer it without its contents.
    `scan`, claims and redrives answer timers as they are kept: their readers need no contents.
    """
    return cast(S, _SealingStore(store, callbacks, turns))


class _SealingStore:
    def __init__(self, store: TimerStore, callbacks: CallbackSealer, turns: Turns) -> None:
        self._store = store
        self._callbacks = callbacks
        self._turns = turns
        self._logged: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        kept = requests
        if self._callbacks.can_seal:
            kept = await self._turns.map(self._sealed_request, requests)
        results = await self._store.create(kept)
        return await self._answers([each.timer for each in requests], results)

    async def restore(self, timers: Sequence[Timer]) -> list[CreateResult]:
        kept = timers
        if self._callbacks.can_seal:
            kept = await self._turns.map(self._sealed, timers)
        return await self._answers(timers, await self._store.restore(kept))

    async def get(self, key: TimerKey) -> Timer | None:
        timer = await self._store.get(key)
        return None if timer is None else self._unsealed(timer)

    async def change_if_pending(self, key: TimerKey, change: Change) -> ConditionalResult | None:
        if change.callback is not UNSET:
            change = replace(change, callback=self._callbacks.sealed(key, change.callback))
        return self._unsealed_result(await self._store.change_if_pending(key, change))

    async def cancel_if_pending(
        self, key: TimerKey, now: Instant, *, only_updated_at: Instant | None = None
    ) -> ConditionalResult | None:
        return self._unsealed_result(
            await self._store.cancel_if_pending(key, now, only_updated_at=only_updated_at)
        )

    async def remove_if_pending(self, key: TimerKey) -> ConditionalResult | None:
        return self._unsealed_result(await self._store.remove_if_pending(key))

    async def page(self, query: PageQuery) -> Page:
        page = await self._store.page(query)
        entries = await self._entries(page.timers)
        return replace(page, timers=[each for each in entries if isinstance(each, Timer)])

    async def scan_entries(self, query: ScanQuery) -> list[ScanEntry]:
        return await self._entries(await self._store.scan_entries(query))

    async def _entries(self, kept: Sequence[ScanEntry]) -> list[ScanEntry]:
        if not any(isinstance(each, Timer) and each.callback.sealed is not None for each in kept):
            return list(kept)
        return await self._turns.map(self._entry, kept)

    async def _answers(
        self, asked: Sequence[Timer], results: list[CreateResult]
    ) -> list[CreateResult]:
        for existence, timer in ((each.existence, each.timer) for each in results):
            if existence is Existence.EXISTING and timer.callback.sealed is not None:
                return await self._turns.map(self._answered, asked, results)
        # Nothing has to be unsealed, and new timers are announced without delay.
        return list(map(self._answered, asked, results))

    def _sealed_request(self, request: CreateRequest) -> CreateRequest:
        return replace(request, timer=self._sealed(request.timer))

    def _sealed(self, timer: Timer) -> Timer:
        callback = self._callbacks.sealed(timer.key, timer.callback)
        return timer if callback is timer.callback else replace(timer, callback=callback)

    def _unsealed(self, timer: Timer) -> Timer:
        """Raises `TimerSealed`."""
        if timer.callback.sealed is None:
            return timer
        try:
            callback = self._callbacks.unsealed(timer.key, timer.callback)
        except CannotUnseal as error:
            self._log_once(timer, error)
            raise TimerSealed(timer, error) from None
        return replace(timer, callback=callback)

    def _unsealed_result(self, result: ConditionalResult | None) -> ConditionalResult | None:
        """The timer is answered without its contents if it cannot be unsealed: the write has taken
        place or been refused, and an error would deny that."""
        if result is None:
            return None
        try:
            return replace(result, timer=self._unsealed(result.timer))
        except TimerSealed:
            return result

    def _answered(self, asked: Timer, result: CreateResult) -> CreateResult:
        """The store's answer to a create, with the contents that its timer has."""
        timer = result.timer
        if timer.callback.sealed is None:
            return result
        if result.existence is not Existence.EXISTING:
            return replace(result, timer=replace(timer, callback=asked.callback))
        try:
            return replace(result, timer=self._unsealed(timer))
        except TimerSealed:
            return CreateResult(Existence.UNREADABLE, asked)

    def _entry(self, entry: ScanEntry) -> ScanEntry:
        """The timer; its position if it cannot be unsealed."""
        if isinstance(entry, Position):
            return entry
        try:
            return self._unsealed(entry)
        except TimerSealed:
            return Position(entry.execute_at, entry.timer_uuid)

    def _log_once(self, timer: Timer, error: CannotUnseal) -> None:
        """One line for each key: there may be millions of such timers."""
        if error.key_id not in self._logged and len(self._logged) < MAX_LOGGED:
            self._logged.add(error.key_id)
            namespace, id = timer.key
            _log.error("timer.sealed", namespace=namespace, id=id, reason=error.message)
