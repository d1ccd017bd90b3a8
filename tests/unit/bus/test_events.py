"""Events are stored by the broker first, then recorded, and repeated with the same id."""

import asyncio
import json
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from msgspec import Raw

from duetime.bus.events import PAUSE_SECONDS, EventDestination
from duetime.bus.memory import MemoryBroker, MemoryBus
from duetime.domain.callback import BusCallback
from duetime.domain.errors import BusUnavailable, LocalShortage
from duetime.domain.instants import Instant, format_instant, plus_ms
from duetime.domain.keys import Epoch, TimerKey
from duetime.domain.namespace import Namespace
from duetime.domain.outcome import NotSent
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer, TimerStatus
from duetime.domain.transitions import claim_of, claimed
from duetime.ports.bus import Channel, OutgoingMessage
from duetime.ports.destination import MaySend, always
from duetime.ports.store import CreateRequest, OnExisting
from duetime.service.timer_service import new_uuid7
from duetime.stores.memory import MemoryStore
from duetime.testing import ManualEngine, VirtualClock
from duetime.testing.timers import make_timer
from duetime.testing.virtual_clock import START_AT


class Bench:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.broker = MemoryBroker()
        self.bus = MemoryBus(self.broker)
        self.store = MemoryStore()
        self.events = EventDestination(self.bus, self.clock)
        self.engine = ManualEngine(self.store, self.events, self.clock)

    async def create(
        self,
        call: str,
        correlation_id: str | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> Timer:
        timer = make_timer(
            call,
            namespace="acme",
            execute_at=START_AT,
            callback=BusCallback(),
            delivery_id=new_uuid7(),
            correlation_id=correlation_id,
            retry_policy=retry_policy,
        )
        await self.store.create([CreateRequest(timer, OnExisting.KEEP)])
        return timer

    async def tick_and_fail(self) -> None:
        ticking = asyncio.ensure_future(self.engine.tick())
        async with asyncio.timeout(5):
            await self.clock.wait_for_sleepers(1)
        self.clock.advance(PAUSE_SECONDS)
        await ticking

    async def status(self, call: str) -> TimerStatus:
        timer = await self.store.get(TimerKey("acme", call))
        assert timer is not None
        return timer.status

    def announced(self) -> list[dict[str, object]]:
        return [json.loads(data) for data in self.broker.messages(Channel.EVENTS)]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    await bench.bus.open()
    await bench.store.open()
    await bench.store.add_namespace(Namespace("acme", 16))
    yield bench
    await bench.bus.close()


class ShortBus(MemoryBus):
    """A bus that cannot connect, for want of a resource of this process."""

    async def publish(self, message: OutgoingMessage, may_send: MaySend = always) -> None:
        raise BusUnavailable("cannot connect", lacks="file descriptors")


async def test_a_shortage_of_this_process_is_no_attempt_and_takes_no_pause() -> None:
    bench = Bench()
    events = EventDestination(ShortBus(bench.broker), bench.clock)
    timer = await bench.create("call-1")
    with pytest.raises(LocalShortage, match="file descriptors"):
        await events.deliver(claim_of(claimed(timer, epoch=Epoch(1), now=START_AT)), lambda: True)
    assert events.published == 0


async def test_an_event_that_may_no_longer_be_sent_is_no_attempt(bench: Bench) -> None:
    timer = await bench.create("call-1")
    claim = claim_of(claimed(timer, epoch=Epoch(1), now=START_AT))
    with pytest.raises(NotSent):
        await bench.events.deliver(claim, lambda: False)
    assert (bench.announced(), bench.events.published) == ([], 0)


async def test_an_event_has_every_member_of_the_contract(bench: Bench) -> None:
    timer = await bench.create("call-1", "req-1")
    bench.clock.advance(0.25)
    await bench.engine.tick()
    now = Instant(plus_ms(START_AT, 250))
    assert bench.announced() == [
        {
            "id": timer.delivery_id,
            "type": "DueTimeReached",
            "tenantId": "acme",
            "aggregateId": "call-1",
            "timestampMs": now // 1_000,
            "correlationId": "req-1",
            "payload": {
                "tenantId": "acme",
                "serviceCallId": "call-1",
                "reachedAt": format_instant(now),
            },
        }
    ]
    assert UUID(timer.delivery_id).version == 7
    assert await bench.status("call-1") is TimerStatus.COMPLETED
    assert bench.events.published == 1


async def test_an_event_without_correlation_id_omits_it(bench: Bench) -> None:
    await bench.create("call-1")
    await bench.engine.tick()
    (event,) = bench.announced()
    assert "correlationId" not in event
    assert "causationId" not in event


@pytest.mark.parametrize("policy", [None, RetryPolicy(max_retries=0)])
async def test_a_timer_is_retried_while_the_broker_is_away(
    bench: Bench, policy: RetryPolicy | None
) -> None:
    timer = await bench.create("call-1", retry_policy=policy)
    bench.broker.fail_with("away")
    for _ in range(200):
        await bench.tick_and_fail()
        bench.clock.advance(6)
    assert await bench.status("call-1") is TimerStatus.PENDING
    bench.broker.fail_with(None)
    await bench.engine.tick()
    assert await bench.status("call-1") is TimerStatus.COMPLETED
    assert [event["id"] for event in bench.announced()] == [timer.delivery_id]


async def test_an_event_whose_acknowledgement_is_lost_is_repeated_with_its_id(bench: Bench) -> None:
    timer = await bench.create("call-1")
    bench.broker.lose_answers_with("no answer")
    await bench.tick_and_fail()
    assert await bench.status("call-1") is TimerStatus.PENDING
    bench.broker.lose_answers_with(None)
    bench.clock.advance(6)
    await bench.engine.tick()
    assert await bench.status("call-1") is TimerStatus.COMPLETED
    # The broker knows the id and drops the repeat.
    assert [event["id"] for event in bench.announced()] == [timer.delivery_id]


async def test_the_payload_of_the_command_comes_back_to_the_letter(bench: Bench) -> None:
    text = b'{"big": 12345678901234567890.10, "e":1E+2}'
    for call, callback in (("with", BusCallback(payload=Raw(text))), ("without", BusCallback())):
        timer = make_timer(call, namespace="acme", execute_at=START_AT, callback=callback)
        await bench.store.create([CreateRequest(timer, OnExisting.KEEP)])
    await bench.engine.tick()
    carried, plain = sorted(bench.broker.messages(Channel.EVENTS), key=len, reverse=True)
    assert b'"payload":' + text + b"}}" in carried
    assert "payload" not in json.loads(plain)["payload"]
