"""Timers of the bus that fire during the measurement: all at one instant, or at a steady rate."""

import time
from statistics import median

import msgspec

from bench.harness.load_generator import EvenInstants
from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.server import Server
from bench.limits.broker import BrokerLimit, PublishEvents, measure_broker
from bench.measurements.bus.command_publisher import Publish, publish_commands, publish_faults
from bench.measurements.bus.command_watcher import Watcher
from bench.measurements.bus.event_audit import EventAudit, audit_events
from bench.measurements.bus.event_listener import Listener
from bench.measurements.firing import GRACE_SECONDS, wait_until_settled
from bench.scale import BusScale
from tests.brokers.nats_server import NatsServer

LEAD_SECONDS = 3.0
COMMANDS_PER_SECOND_AT_LEAST = 2_000
LIMIT_IN_FLIGHT = 256


class BusSeen(msgspec.Struct, frozen=True):
    events_published: int


class HealthData(msgspec.Struct, frozen=True):
    bus: BusSeen


class HealthAnswer(msgspec.Struct, frozen=True):
    data: HealthData


class EventsRound(msgspec.Struct, frozen=True, kw_only=True):
    """Timers that were scheduled, announced and settled.

    `settled_us` is when the server had answered that all are completed.
    """

    count: int
    first_due_us: int
    last_arrived_us: int
    settled_us: int
    lateness: Percentiles
    announced: Percentiles
    """Lateness of `reachedAt`, when the server published the event."""
    arrivals_ms: list[float]
    """Milliseconds after the first due instant, ascending."""
    audit: EventAudit
    faults: list[str]


class EventsBurstFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Medians of the rounds. Rates count from the due instant."""

    settled_per_second: float
    arrived_per_second: float
    lateness: Percentiles
    limit: BrokerLimit
    ratio: float
    rounds: list[EventsRound]
    faults: list[str]


class EventsSteadyFigures(msgspec.Struct, frozen=True, kw_only=True):
    per_second: int
    seconds: int
    lateness: Percentiles
    round: EventsRound
    faults: list[str]


def run_round(
    what: str,
    server: Server,
    broker: NatsServer,
    listener: Listener,
    count: int,
    step_us: int,
    *,
    first_number: int = 0,
) -> EventsRound:
    """Schedule `count` timers well before the first is due, and wait until all are settled."""
    lead_seconds = LEAD_SECONDS + count / COMMANDS_PER_SECOND_AT_LEAST
    # Whole milliseconds, which every store keeps exactly.
    first_due_us = int((time.time() + lead_seconds) * 1_000) * 1_000
    instants = EvenInstants(first_us=first_due_us, step_us=step_us)
    tally = server.tally()
    published_before = events_published(server)
    with Watcher() as watcher:
        published = publish_commands(
            Publish(port=broker.port, count=count, instants=instants, first_number=first_number)
        )
        watcher.begin(broker.port, GRACE_SECONDS)
        drained = watcher.wait()
    last_due_us = instants.due_us(count - 1)
    listener.wait_for(published.accepted, last_due_us / 1e6 - time.time() + GRACE_SECONDS)
    settled_us, settled = wait_until_settled(tally, published.accepted)
    events = listener.take()
    awaited = [
        (each, instants.due_us(each.number - first_number)) for each in events if each.number >= 0
    ]
    record = audit_events(events, instants, first_number, count)
    faults = [*publish_faults(what, published), *record.faults(what)]
    announced = events_published(server) - published_before
    if announced != count:
        faults.append(f"{what}: the server published {announced} events for {count} timers")
    if drained.drained_us >= first_due_us:
        late_ms = (drained.drained_us - first_due_us) / 1_000
        faults.append(
            f"{what}: the commands were handled {late_ms:.0f} ms after the first due instant"
        )
    if not settled:
        faults.append(f"{what}: not all completed within {GRACE_SECONDS:.0f} s")
    return EventsRound(
        count=count,
        first_due_us=first_due_us,
        last_arrived_us=events[-1].arrived_us if events else 0,
        settled_us=settled_us,
        lateness=percentiles_of([(each.arrived_us - due_us) / 1_000 for each, due_us in awaited]),
        announced=percentiles_of([(each.reached_us - due_us) / 1_000 for each, due_us in awaited]),
        arrivals_ms=[(each.arrived_us - first_due_us) / 1_000 for each in events],
        audit=record,
        faults=faults,
    )


def events_published(server: Server) -> int:
    """Events published, as the server counts them.

    The broker drops repeated events by their id, so a consumer would not notice them."""
    answer = msgspec.json.decode(server.read("/healthz"), type=HealthAnswer)
    return answer.data.bus.events_published


def measure_events_burst(server: Server, broker: NatsServer, scale: BusScale) -> EventsBurstFigures:
    limit = measure_broker(
        PublishEvents(
            port=broker.port,
            count=scale.burst * scale.burst_rounds,
            in_flight=LIMIT_IN_FLIGHT,
        )
    )
    with Listener(broker.port) as listener:
        rounds = [
            run_round(
                f"bus burst {number + 1}",
                server,
                broker,
                listener,
                scale.burst,
                step_us=0,
                first_number=number * scale.burst,
            )
            for number in range(scale.burst_rounds)
        ]

    def middle_rate(durations_us: list[int]) -> float:
        seconds = median(durations_us) / 1e6
        return round(scale.burst / seconds, 1) if seconds > 0 else 0.0

    by_settling = sorted(rounds, key=lambda each: each.settled_us - each.first_due_us)
    settled_per_second = middle_rate([each.settled_us - each.first_due_us for each in rounds])
    return EventsBurstFigures(
        settled_per_second=settled_per_second,
        arrived_per_second=middle_rate(
            [each.last_arrived_us - each.first_due_us for each in rounds]
        ),
        lateness=by_settling[len(rounds) // 2].lateness,
        limit=limit,
        ratio=round(settled_per_second / limit.per_second, 3),
        rounds=by_settling,
        faults=[fault for each in rounds for fault in each.faults],
    )


def measure_events_steady(
    server: Server, broker: NatsServer, scale: BusScale
) -> EventsSteadyFigures:
    count = scale.steady_per_second * scale.steady_seconds
    step_us = 1_000_000 // scale.steady_per_second
    with Listener(broker.port) as listener:
        round_ = run_round("bus steady", server, broker, listener, count, step_us)
    return EventsSteadyFigures(
        per_second=scale.steady_per_second,
        seconds=scale.steady_seconds,
        lateness=round_.lateness,
        round=round_,
        faults=round_.faults,
    )
