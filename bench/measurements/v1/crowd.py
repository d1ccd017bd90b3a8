"""A healthy endpoint beside thousands that never answer, each with one timer."""

import time

import msgspec

from bench.harness.callback_answers import Manner
from bench.harness.load_generator import EvenInstants, generate_all
from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.measurements.callback_audit import Audit, audit
from bench.measurements.firing import GRACE_SECONDS, creation_faults
from bench.measurements.v1.batches import batch_load, due_soon
from bench.scale import V1Scale

HEALTHY_PER_SECOND = 100
HEALTHY_SECONDS = 60
HANGING_SECONDS = 20
"""Time within which the hanging endpoints' timers come due, from the first second on."""

SECOND_US = 1_000_000


class CrowdFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`endpoints` hang with one timer each; `hung` counts the callbacks that reached them."""

    endpoints: int
    healthy: int
    lateness: Percentiles
    hung: int
    audit: Audit
    faults: list[str]


def measure_crowd(server: Server, scale: V1Scale) -> CrowdFigures:
    endpoints, count = scale.hanging_endpoints, HEALTHY_PER_SECOND * HEALTHY_SECONDS
    with Receiver(Manner.CONFIRM) as healthy, Receiver(Manner.HANG) as hanging:
        due_us = due_soon(endpoints + count)
        first_number = healthy.reserve(count)
        steady = EvenInstants(first_us=due_us, step_us=SECOND_US // HEALTHY_PER_SECOND)
        crowd = EvenInstants(
            first_us=due_us + SECOND_US, step_us=HANGING_SECONDS * SECOND_US // endpoints
        )
        loads = [
            batch_load(server, healthy.url, count, steady, first_number=first_number),
            batch_load(server, hanging.url, endpoints, crowd, hosts=endpoints),
        ]
        creates = generate_all(loads)
        last_due_seconds = due_us / SECOND_US + HEALTHY_SECONDS
        healthy.wait_for(count, last_due_seconds - time.time() + GRACE_SECONDS)
        callbacks = healthy.take()
        hung = hanging.wait_for(0, 0.0)
    record = audit(callbacks, first_number, count)
    faults = [
        fault
        for each, load in zip(creates, loads, strict=True)
        for fault in creation_faults("crowd", each, load.count, due_us)
    ]
    if not hung:
        faults.append("crowd: no hanging endpoint was called")
    return CrowdFigures(
        endpoints=endpoints,
        healthy=count,
        lateness=percentiles_of([callback.lateness_ms for callback in callbacks]),
        hung=hung,
        audit=record,
        faults=[*faults, *record.faults("crowd")],
    )
