"""A healthy endpoint beside one that never answers."""

import time

import msgspec

from bench.harness.callback_answers import Manner
from bench.harness.load_generator import generate_all
from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.measurements.callback_audit import Audit, audit
from bench.measurements.firing import GRACE_SECONDS, creation_faults
from bench.measurements.v1.batches import all_at, batch_load, due_soon
from bench.scale import V1Scale


class HealthyRound(msgspec.Struct, frozen=True, kw_only=True):
    """The healthy endpoint's timers, all due at one instant."""

    lateness: Percentiles
    arrivals_ms: list[float]
    """Milliseconds after the due instant, ascending."""
    audit: Audit
    faults: list[str]


class HangingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """In `together`, the hanging endpoint's timers are due at the same instant; `ratio` is its p99
    divided by that of `alone`. `hung` counts the callbacks that waited for an answer."""

    healthy: int
    hanging: int
    alone: HealthyRound
    together: HealthyRound
    ratio: float
    hung: int
    faults: list[str]


def measure_hanging(server: Server, scale: V1Scale) -> HangingFigures:
    with Receiver(Manner.CONFIRM) as healthy, Receiver(Manner.HANG) as hanging:
        # The first callbacks open connections, which would distort the comparison.
        run_healthy("warm-up", server, healthy, scale.healthy_timers)
        alone = run_healthy("alone", server, healthy, scale.healthy_timers)
        together = run_healthy(
            "beside a hanging endpoint",
            server,
            healthy,
            scale.healthy_timers,
            beside=(hanging, scale.hanging_timers),
        )
        hung = hanging.wait_for(0, 0.0)
    faults = [*alone.faults, *together.faults]
    if not hung:
        faults.append("hanging: the hanging endpoint was never called")
    return HangingFigures(
        healthy=scale.healthy_timers,
        hanging=scale.hanging_timers,
        alone=alone,
        together=together,
        ratio=round(together.lateness.p99_ms / alone.lateness.p99_ms, 2),
        hung=hung,
        faults=faults,
    )


def run_healthy(
    what: str,
    server: Server,
    healthy: Receiver,
    count: int,
    beside: tuple[Receiver, int] | None = None,
) -> HealthyRound:
    """Fire timers of one instant at the healthy endpoint, and at `beside` if given."""
    all_timers = [(healthy, count), *([beside] if beside else [])]
    due_us = due_soon(sum(timers for _, timers in all_timers))
    first_number = healthy.reserve(count)
    creates = generate_all(
        [
            batch_load(server, each.url, timers, all_at(due_us), first_number=first_number)
            for each, timers in all_timers
        ]
    )
    healthy.wait_for(count, due_us / 1e6 - time.time() + GRACE_SECONDS)
    callbacks = sorted(healthy.take(), key=lambda callback: callback.arrived_us)
    record = audit(callbacks, first_number, count)
    return HealthyRound(
        lateness=percentiles_of([callback.lateness_ms for callback in callbacks]),
        arrivals_ms=[callback.lateness_ms for callback in callbacks],
        audit=record,
        faults=[
            *(
                fault
                for each, (_, timers) in zip(creates, all_timers, strict=True)
                for fault in creation_faults(f"hanging, {what}", each, timers, due_us)
            ),
            *record.faults(f"hanging, {what}"),
        ],
    )
