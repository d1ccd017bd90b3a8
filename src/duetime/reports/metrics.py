"""The metrics of the engine, the cluster and the bus, which are read when they are asked for."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from duetime.bus.bus_router import BusRouter
from duetime.delivery.http import HttpDestination
from duetime.engine import Engine
from duetime.ports.endpoints import EndpointState, EndpointStatus
from duetime.service.reporting.objectives import Objectives
from duetime.telemetry.metrics.catalogue import bus as of_bus
from duetime.telemetry.metrics.catalogue import cluster as of_cluster
from duetime.telemetry.metrics.catalogue import engine as of_engine
from duetime.telemetry.metrics.catalogue import objective as of_objective
from duetime.telemetry.metrics.recording import Gauge, Recorder, Samples, one

if TYPE_CHECKING:
    from duetime.nats.connection import NatsConnection


def timer_metrics(
    engine: Engine,
    http: HttpDestination,
    router: BusRouter | None,
    nats: "NatsConnection | None",
    objectives: Objectives,
) -> Sequence[Recorder]:
    return (
        *engine_metrics(engine, http),
        *cluster_metrics(engine),
        *bus_metrics(router, nats),
        *objective_metrics(objectives),
    )


def engine_metrics(engine: Engine, http: HttpDestination) -> Sequence[Recorder]:
    meters = engine.meters
    return (
        *meters.recorders(),
        one(of_engine.RUNNING, lambda: int(engine.is_running)),
        one(of_engine.SLOTS, lambda: engine.slots),
        one(of_engine.SLOTS_IN_USE, lambda: engine.in_flight),
        one(of_engine.CLAIMS_WAITING, lambda: engine.waiting),
        one(of_engine.UNWRITTEN, lambda: engine.unwritten),
        one(of_engine.SHORTAGES, lambda: engine.local_shortages),
        one(of_engine.CALLBACKS_REFUSED, lambda: http.refused),
        one(of_engine.READ_AT, lambda: meters.read_at_seconds),
        Gauge(of_engine.LANES, lambda: _lanes(engine.endpoints())),
        Gauge(of_engine.BREAKERS, lambda: _breakers(engine.endpoints())),
        one(of_engine.PAUSED, lambda: engine.paused_endpoints),
        Gauge(of_engine.ENDPOINT_OPEN, lambda: _open_endpoints(engine)),
        one(of_bus.SCHEDULES_PROCESSED, meters.attempts),
    )


def cluster_metrics(engine: Engine) -> Sequence[Recorder]:
    return (
        one(of_cluster.MEMBERS, lambda: engine.members or 1),
        one(of_cluster.SHARDS, lambda: engine.shards),
        one(of_cluster.SHARDS_OWNED, lambda: engine.shards_owned),
        one(of_cluster.HIGHEST_EPOCH, lambda: engine.highest_epoch),
        Gauge(of_cluster.HANDOVERS, lambda: _handovers(engine)),
        one(of_cluster.CLOCK_OFFSET, lambda: _seconds(engine.clock_watch.offset_ms)),
        one(of_cluster.CLOCK_SKEWED, lambda: int(engine.clock_watch.is_skewed)),
    )


def bus_metrics(router: BusRouter | None, nats: "NatsConnection | None") -> Sequence[Recorder]:
    def connected() -> Samples:
        if router is not None:
            yield ("bus",), int(router.is_connected)
        if nats is not None:
            yield ("nats",), int(nats.is_connected)

    brokers = Gauge(of_bus.CONNECTED, connected)
    if router is None:
        return (brokers,)
    counts, events = router.counts, router.events
    return (
        brokers,
        Gauge(
            of_bus.RECEIVED,
            lambda: [
                (("scheduled",), counts.scheduled),
                (("canceled",), counts.canceled),
                (("unchanged",), counts.unchanged),
                (("ignored",), counts.ignored),
                (("rejected",), counts.rejected),
            ],
        ),
        one(of_bus.REJECTED, lambda: counts.rejected),
        one(of_bus.PUBLISHED, lambda: events.published),
        one(of_bus.PUBLISH_FAILED, lambda: events.failed),
        one(of_bus.LAG, lambda: router.lag),
        one(of_bus.COMMANDS_RECEIVED, lambda: counts.received),
    )


def objective_metrics(objectives: Objectives) -> Sequence[Recorder]:
    shown = objectives.shown
    return (
        Gauge(of_objective.OBJECTIVE, lambda: [(each.labels, each.ratio) for each in shown()]),
        Gauge(
            of_objective.THRESHOLD,
            lambda: [(each.labels, each.lateness_seconds) for each in shown()],
        ),
        Gauge(
            of_objective.WINDOW, lambda: [(each.labels, each.window_seconds) for each in shown()]
        ),
        Gauge(
            of_objective.BUDGET_LEFT, lambda: [(each.labels, each.budget_left) for each in shown()]
        ),
    )


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1_000


def _lanes(endpoints: Iterable[EndpointStatus]) -> Samples:
    states = Counter(_lane_state(each) for each in endpoints if each.in_flight or each.waiting)
    return [((state,), states[state]) for state in ("flowing", "waiting", "held")]


def _lane_state(endpoint: EndpointStatus) -> str:
    if endpoint.pause is not None or endpoint.state is not EndpointState.CLOSED:
        return "held"
    return "waiting" if endpoint.waiting else "flowing"


def _breakers(endpoints: Iterable[EndpointStatus]) -> Samples:
    states = Counter(each.state for each in endpoints)
    return [((state.value,), states[state]) for state in EndpointState]


def _open_endpoints(engine: Engine) -> Samples:
    for endpoint in engine.endpoints():
        label = engine.meters.endpoint_label(endpoint.endpoint)
        if label is not None:
            yield (label,), int(endpoint.state is not EndpointState.CLOSED)


def _handovers(engine: Engine) -> Samples:
    handovers = engine.handovers
    return [
        (("taken",), handovers.taken),
        (("released",), handovers.released),
        (("lost",), handovers.lost),
    ]
