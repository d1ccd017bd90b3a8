"""A consumer of commands on a broker and a store in memory, and virtual time."""

import asyncio
import json
from collections.abc import Sequence

from duetime.bus.command_audit import CommandAudit
from duetime.bus.command_consumer import CommandConsumer
from duetime.bus.events import EventDestination
from duetime.bus.memory import MemoryBroker, MemoryBus
from duetime.domain.errors import BusUnavailable, StoreUnavailable
from duetime.domain.instants import format_instant, plus_ms
from duetime.domain.timer import TimerStatus
from duetime.ports.bus import Channel, OutgoingMessage
from duetime.ports.destination import MaySend, always
from duetime.ports.store import CreateRequest, CreateResult
from duetime.service.bus_scheduling import Scheduling
from duetime.service.create_batcher import CreateBatcher
from duetime.service.namespaces import Namespaces
from duetime.service.security.audit_log import AuditLog, Sampling
from duetime.service.turns import Turns
from duetime.stores.memory import MemoryStore
from duetime.testing import LoopClock
from duetime.testing.virtual_clock import START_AT
from tests.unit.service.service_bench import RecordingWakeUps, timer_rules

RULES = timer_rules(min_delay_ms=0, past_is_due=True)
DUE_AT = plus_ms(START_AT, 60_000)


class UnsteadyStore(MemoryStore):
    """Fails `failures_left` times before it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.failures_left = 0
        self.failure: Exception = StoreUnavailable("the store is away")
        self.stumbles_over: str | None = None
        self.first_create = asyncio.Event()

    async def create(self, requests: Sequence[CreateRequest]) -> list[CreateResult]:
        self.first_create.set()
        if self.failures_left:
            self.failures_left -= 1
            raise self.failure
        if any(request.timer.key.id == self.stumbles_over for request in requests):
            raise RuntimeError("a bug")
        return await super().create(requests)


class RefusingBus(MemoryBus):
    """A bus that is up but refuses messages on one channel."""

    refuses: Channel | None = None

    async def publish(self, message: OutgoingMessage, may_send: MaySend = always) -> None:
        if message.channel is self.refuses:
            raise BusUnavailable("the stream is full")
        await super().publish(message, may_send)


class Bench:
    def __init__(self, audited: Sampling | None = None) -> None:
        self.broker = MemoryBroker(redeliver_after_seconds=30)
        self.bus = RefusingBus(self.broker)
        self.clock = LoopClock()
        self.store = UnsteadyStore()
        wakeups = RecordingWakeUps()
        self.namespaces = Namespaces(self.store)
        self.scheduling = Scheduling(
            self.store,
            self.clock,
            wakeups,
            EventDestination(self.bus, self.clock),
            self.namespaces,
            RULES,
            creates=CreateBatcher(self.store, wakeups),
            turns=Turns(self.clock),
        )
        self.audit_log = AuditLog(self.store.security, self.clock)
        audit = None if audited is None else CommandAudit(self.audit_log, audited, self.clock)
        self.consumer = CommandConsumer(self.bus, self.scheduling, self.clock, audit)
        self.sender = MemoryBus(self.broker)

    async def send(self, *commands: bytes) -> None:
        await self.sender.open()
        for number, data in enumerate(commands):
            message_id = f"{number}-{hash(data)}"
            await self.sender.publish(
                OutgoingMessage(channel=Channel.COMMANDS, id=message_id, key="k", data=data)
            )

    async def run(self, seconds: float = 10) -> None:
        """Let the consumer work for this long."""
        self.consumer.start()
        await self.clock.sleep(seconds)

    async def pending(self) -> int:
        return (await self.store.counts(None)).get(TimerStatus.PENDING, 0)

    def reasons(self) -> list[str]:
        rejected = self.broker.messages(Channel.REJECTED)
        return [json.loads(data)["payload"]["reason"] for data in rejected]

    @property
    def unacknowledged(self) -> int:
        return len(self.broker.messages(Channel.COMMANDS))


def command(call: str, tenant: str = "acme") -> bytes:
    return json.dumps(
        {
            "id": f"envelope-of-{call}",
            "type": "ScheduleTimer",
            "tenantId": tenant,
            "timestampMs": 1,
            "payload": {
                "tenantId": tenant,
                "serviceCallId": call,
                "dueAt": format_instant(DUE_AT),
            },
        }
    ).encode()


def cancel_command(call: str, tenant: str = "acme") -> bytes:
    payload = {"tenantId": tenant, "serviceCallId": call}
    envelope = {"id": f"cancel-{call}", "type": "CancelTimer", "tenantId": tenant}
    return json.dumps({**envelope, "timestampMs": 1, "payload": payload}).encode()
