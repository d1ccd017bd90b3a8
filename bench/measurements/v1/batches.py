"""Batches of creates over HTTP, with random ids and random due instants."""

import time

import msgspec

from bench.harness.create_bodies import V1Form
from bench.harness.load_generator import (
    Batches,
    EvenInstants,
    Load,
    LoadFigures,
    RandomInstants,
    generate,
)
from bench.harness.percentiles import Percentiles
from bench.harness.server import Server, ServerCpu
from bench.limits.inserts import CALLBACK_URL, InsertLimit, measure_inserts
from bench.measurements.creates import DAY_US, HOUR_US, faults_of
from bench.measurements.v1.listing import time_first_page
from bench.scale import V1Scale
from bench.stores.store_under_test import StoreUnderTest

BATCH = 500
CONNECTIONS = 4
SQLITE_TRANSACTION = CONNECTIONS * BATCH // 2
"""Timers in a transaction of the SQLite store: while some batches are written, the others gather.
Measured: 1,100 on average."""

LEAD_SECONDS = 4.0
CREATES_PER_SECOND_AT_LEAST = 5_000
PLAIN = V1Form()
DUE_WITHIN_US = 30 * DAY_US


class BatchesFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Rates count timers, latencies count batches. `limit` is measured just before.

    `memory_mb` and `first_page` are measured right after the load."""

    batch: int
    connections: int
    per_second: float
    load: LoadFigures
    limit: InsertLimit
    ratio: float
    cpu_us_per_timer: float
    memory_mb: float
    first_page: Percentiles
    stored: int
    faults: list[str]


def measure_batches(store: StoreUnderTest, scale: V1Scale) -> BatchesFigures:
    instants = random_instants()
    limit = measure_inserts(
        store,
        instants,
        warm_up=scale.batch_warm_up,
        count=scale.batch_timers,
        batch=BATCH,
        sqlite_batch=SQLITE_TRANSACTION,
    )
    with Server(store) as server:
        generate(batch_load(server, CALLBACK_URL, scale.batch_warm_up, instants))
        tally = server.tally()
        cpu = ServerCpu(server)
        batches = generate(batch_load(server, CALLBACK_URL, scale.batch_timers, instants))
        cpu_us_per_timer = cpu.us_per_timer(scale.batch_timers)
        memory_mb = round(server.memory_mb(), 1)
        first_page = time_first_page(server)
        stored = tally.pending()
    per_second = round(batches.accepted / batches.seconds, 1)
    return BatchesFigures(
        batch=BATCH,
        connections=CONNECTIONS,
        per_second=per_second,
        load=batches,
        limit=limit,
        ratio=round(per_second / limit.per_second, 3),
        cpu_us_per_timer=cpu_us_per_timer,
        memory_mb=memory_mb,
        first_page=first_page,
        stored=stored,
        faults=faults_of("batches", batches, scale.batch_timers, stored),
    )


def batch_load(
    server: Server,
    callback_url: str,
    count: int,
    instants: RandomInstants | EvenInstants,
    *,
    form: V1Form = PLAIN,
    first_number: int = 0,
    hosts: int = 1,
) -> Load:
    return Load(
        port=server.port,
        api_key=server.api_key,
        callback_url=callback_url,
        count=count,
        instants=instants,
        batches=Batches(size=BATCH, form=form),
        first_number=first_number,
        connections=CONNECTIONS,
        hosts=hosts,
    )


def all_at(due_us: int) -> EvenInstants:
    return EvenInstants(first_us=due_us, step_us=0)


def due_soon(count: int) -> int:
    """An instant, in whole milliseconds, far enough ahead to create `count` timers before it."""
    lead_seconds = LEAD_SECONDS + count / CREATES_PER_SECOND_AT_LEAST
    return int((time.time() + lead_seconds) * 1_000) * 1_000


def random_instants() -> RandomInstants:
    """Due instants after the end of the measurement."""
    earliest_us = time.time_ns() // 1_000 + HOUR_US
    return RandomInstants(earliest_us=earliest_us, latest_exclusive_us=earliest_us + DUE_WITHIN_US)
