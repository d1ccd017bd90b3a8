"""Group commit for creates: the next batch fills while one is being written."""

import asyncio
from collections.abc import Sequence

from msgspec import UNSET

from duetime.domain.errors import TimerUnreadable
from duetime.domain.instants import Instant
from duetime.domain.keys import ShardNumber
from duetime.ports.store import CreateRequest, CreateResult, Existence, TimerStore
from duetime.ports.wakeups import WakeUps

MAX_BATCH = 1_000
MAX_BATCH_BYTES = 4 * 2**20
"""Payload bytes in one batch, so that small creates do not wait long for large ones."""


class CreateBatcher:
    """Turns many concurrent creates into few durable writes.

    While one batch is being written the next one fills; no request waits for a batch to fill. If a
    batch fails, only its own requests fail, with the store's exception; later requests are
    written as if nothing had happened. A request whose caller has gone is written all the
    same: the caller cannot know the outcome, so the store decides.
    """

    def __init__(self, store: TimerStore, wakeups: WakeUps) -> None:
        self._store = store
        self._wakeups = wakeups
        self._requests: list[CreateRequest] = []
        self._answers: list[asyncio.Future[CreateResult]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: asyncio.Task[None] | None = None

    def create(self, request: CreateRequest) -> asyncio.Future[CreateResult]:
        """Submit a request. Its future has the result once the timer is durable and announced."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        answer: asyncio.Future[CreateResult] = loop.create_future()
        self._requests.append(request)
        self._answers.append(answer)
        if self._writer is None:
            self._writer = loop.create_task(self._write_until_empty(), name="create-batcher")
        return answer

    async def create_all(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        """Write the requests of one caller, without a future for each.

        A large batch takes several writes; when one fails, those before it have taken place.
        Raises what the store raises.
        """
        results: list[CreateResult] = []
        for start in range(0, len(requests), MAX_BATCH):
            written = await self._store.create(requests[start : start + MAX_BATCH])
            self._announce(written)
            results += written
        return results

    def _announce(self, results: Sequence[CreateResult]) -> None:
        earliest: dict[ShardNumber, Instant] = {}
        existing, unreadable = Existence.EXISTING, Existence.UNREADABLE
        for result in results:
            if result.existence is not existing and result.existence is not unreadable:
                timer = result.timer
                due_at = earliest.get(timer.shard)
                if due_at is None or timer.due_at < due_at:
                    earliest[timer.shard] = timer.due_at
        for shard, due_at in earliest.items():
            self._wakeups.announce(shard, due_at)

    async def _write_until_empty(self) -> None:
        try:
            while self._requests:
                await self._write_batch()
        finally:
            self._writer = None

    async def _write_batch(self) -> None:
        count = _batch_of(self._requests)
        requests, answers = self._requests[:count], self._answers[:count]
        self._requests, self._answers = self._requests[count:], self._answers[count:]
        try:
            results = await self._store.create(requests)
        except asyncio.CancelledError:
            for answer in [*answers, *self._answers]:
                answer.cancel()
            self._requests, self._answers = [], []
            raise
        except Exception as error:
            for answer in answers:
                if not answer.done():
                    answer.set_exception(error)
            return
        self._announce(results)
        for answer, result in zip(answers, results, strict=True):
            if answer.done():
                continue
            if result.existence is Existence.UNREADABLE:
                answer.set_exception(TimerUnreadable(result.timer.key))
            else:
                answer.set_result(result)


def _batch_of(requests: Sequence[CreateRequest]) -> int:
    """The number of requests, from the first, that make the next batch: at least one."""
    size = 0
    for position, request in enumerate(requests[:MAX_BATCH]):
        callback = request.timer.callback
        if callback.payload is not UNSET:
            size += len(callback.payload)
            if size > MAX_BATCH_BYTES and position:
                return position
    return min(len(requests), MAX_BATCH)
