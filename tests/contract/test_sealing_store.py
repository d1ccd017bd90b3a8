"""The store contract, on a store that keeps contents sealed."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.namespace import Namespace
from duetime.domain.timer import Claim, Timer
from duetime.domain.transitions import Redrive
from duetime.ports.store import ClaimBatch, Leases, ScanQuery
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer, SealingKey
from duetime.service.sealing_store import with_sealed_contents
from duetime.service.turns import Turns
from duetime.stores.memory import MemoryStore
from duetime.testing import VirtualClock
from duetime.testing.store_contract import Reopen, Store, StoreContract
from tests.contract.stores import Storage

_SEALER = CallbackSealer(Sealer([SealingKey("k", bytes(32))]))


class _SealedMemoryStore(MemoryStore):
    """Unseals claims and scans too, as their readers do where they need contents."""

    async def claim_due(self, *arguments: Any, **options: Any) -> ClaimBatch:
        batch = await super().claim_due(*arguments, **options)
        return replace(batch, claims=list(map(_SEALER.unsealed_claim, batch.claims)))

    async def executing(self, leases: Leases) -> list[Claim]:
        return list(map(_SEALER.unsealed_claim, await super().executing(leases)))

    async def scan(self, query: ScanQuery) -> list[Timer]:
        return list(map(_unsealed, await super().scan(query)))

    async def redrive_if_failed(
        self, redrives: Sequence[Redrive], now: Instant
    ) -> list[Timer | None]:
        timers = await super().redrive_if_failed(redrives, now)
        return [None if timer is None else _unsealed(timer) for timer in timers]


def _unsealed(timer: Timer) -> Timer:
    return replace(timer, callback=_SEALER.unsealed(timer.key, timer.callback))


def _sealing_store() -> Store:
    return with_sealed_contents(_SealedMemoryStore(), _SEALER, Turns(VirtualClock()))


@pytest.fixture
async def storage() -> AsyncIterator[Storage]:
    storage = Storage(_sealing_store)
    await storage.store.open()
    await storage.store.add_namespace(Namespace("default", 16))
    yield storage
    await storage.store.close()


@pytest.fixture
def store(storage: Storage) -> Store:
    return storage.store


@pytest.fixture
def reopen(storage: Storage) -> Reopen:
    return storage.reopen


class TestSealingStore(StoreContract):
    pass
