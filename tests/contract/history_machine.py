"""The state of a random history: a store, the model, and a clock."""

import asyncio
from collections.abc import Coroutine
from typing import ClassVar, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.keys import TimerKey, timer_uuid_of
from duetime.domain.timer import Claim, Timer
from duetime.domain.transitions import Settlement
from duetime.ports.store import Leases, Position
from duetime.testing.store_contract import Store
from duetime.testing.store_model import StoreModel
from duetime.testing.virtual_clock import START_AT
from tests.contract.histories import LeaseKind, OutcomeKind, leases_of, settlement_of
from tests.contract.stores import Site

T = TypeVar("T")


class HistoryMachine(RuleBasedStateMachine):
    """Applies one random history to a store and to the model.

    Its clock only moves on, so timers finish in the order of their instants.
    """

    runner: ClassVar[asyncio.Runner]
    site: ClassVar[Site]

    def __init__(self) -> None:
        super().__init__()
        self.storage = self.run(self.site.open_empty())
        self.model = StoreModel()
        self.now = START_AT
        self.claims: list[Claim] = []
        self.copied: dict[TimerKey, Timer] = {}
        self.deliveries = 0

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        return self.runner.run(coroutine)

    @property
    def store(self) -> Store:
        return self.storage.store

    def teardown(self) -> None:
        self.run(self.site.put_back(self.storage))

    def after(self, delay_seconds: int) -> Instant:
        return Instant(self.now + delay_seconds * MICROSECONDS_PER_SECOND)

    def place(self, delay: int, key: TimerKey, at_a_timer: bool) -> Position:
        timer = self.model.get(key) if at_a_timer else None
        execute_at = self.after(delay) if timer is None else timer.execute_at
        return Position(execute_at, timer_uuid_of(key))

    def new_delivery_id(self) -> str:
        self.deliveries += 1
        return f"delivery-{self.deliveries}"

    def leases(self, kind: LeaseKind) -> Leases:
        return leases_of(kind, self.model.epochs)

    def settlement(self, claim: Claim, kind: OutcomeKind, delay: int) -> Settlement:
        return settlement_of(
            claim, kind, now=self.now, then=self.after(delay), new_delivery_id=self.new_delivery_id
        )
