"""A healthy endpoint beside one that takes every callback and never answers."""

import time

import msgspec

from bench.harness.callback_answers import Manner
from bench.harness.load_generator import generate_all
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.harness.spread import Spread, spread_of
from bench.measurements.callback_audit import Audit, audit
from bench.measurements.firing import GRACE_SECONDS, creation_faults
from bench.measurements.v1.batches import all_at, batch_load, due_soon
from bench.scale import V1Scale


class HealthyRound(msgspec.Struct, frozen=True, kw_only=True):
    """The healthy endpoint's timers, all of one instant, as its receiver saw them."""

    lateness: Spread
    arrivals_ms: list[float]
    """After the due instant, in order."""
    audit: Audit
    faults: list[str]


class HangingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`together` is with the hanging endpoint's timers due at the same instant; `ratio` is how
    many times as late p99 is then. `hung` is how many callbacks were waiting for an answer."""

    healthy: int
    hanging: int
    alone: HealthyRound
    together: HealthyRound
    ratio: float
    hung: int
    faults: list[str]


def measure_hanging(server: Server, scale: V1Scale) -> HangingFigures:
    with Receiver(Manner.CONFIRM) as healthy, Receiver(Manner.HANG) as hanging:
        # The first callbacks of a server open connections; that is not what is compared.
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
        faults.append("hanging: the endpoint that was to hang was never called")
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
    """Timers of one instant for the healthy endpoint, and for another if there is one."""
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
        lateness=spread_of([callback.lateness_ms for callback in callbacks]),
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
