"""Creates and firings at a steady rate while another session holds a snapshot of the database.

PostgreSQL keeps all dead rows meanwhile. Whoever reads past them gets slower from second to second.
"""

import time

import msgspec

from bench.harness.load_generator import EvenInstants, Load, generate
from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.receiver import Receiver
from bench.harness.server import Server, ServerCpu
from bench.measurements.callback_audit import Audit, audit
from bench.measurements.firing import GRACE_SECONDS, wait_until_settled
from bench.stores.postgres_queries import Queries
from bench.stores.store_under_test import StoreUnderTest

DELAY_SECONDS = 6
"""Time from a create to its due instant."""

PARTS = 4

HOLD = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_catalog.pg_class"
NO_IDLE_LIMIT = {"idle_in_transaction_session_timeout": "0"}


class HeldFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`parts` has the lateness of each quarter of the time: a backlog shows in the last."""

    per_second: int
    seconds: int
    lateness: Percentiles
    parts: list[Percentiles]
    cpu_us_per_timer: float
    audit: Audit
    faults: list[str]


def measure_held_snapshot(
    store: StoreUnderTest, server: Server, receiver: Receiver, per_second: int, seconds: int
) -> HeldFigures:
    what = f"held snapshot at {per_second:,}/s"
    count = per_second * seconds
    first_number = receiver.reserve(count)
    tally = server.tally()
    cpu = ServerCpu(server)
    with Queries(store.settings["DATABASE_URL"], NO_IDLE_LIMIT) as holder:
        holder.execute(HOLD)
        first_due_us = int((time.time() + DELAY_SECONDS) * 1_000) * 1_000
        load = Load(
            port=server.port,
            api_key=server.api_key,
            callback_url=receiver.url,
            count=count,
            instants=EvenInstants(first_us=first_due_us, step_us=1_000_000 // per_second),
            first_number=first_number,
            timeout_seconds=seconds + GRACE_SECONDS,
            per_second=per_second,
        )
        creates = generate(load)
        receiver.wait_for(creates.accepted, DELAY_SECONDS + GRACE_SECONDS)
        _, settled = wait_until_settled(tally, creates.accepted)
    callbacks = sorted(receiver.take(timeout_seconds=600.0), key=lambda each: each.due_us)
    record = audit(callbacks, first_number, count)
    lateness_ms = [callback.lateness_ms for callback in callbacks]
    part = -(-len(lateness_ms) // PARTS) or 1
    return HeldFigures(
        per_second=per_second,
        seconds=seconds,
        lateness=percentiles_of(lateness_ms),
        parts=[
            percentiles_of(lateness_ms[start : start + part])
            for start in range(0, len(lateness_ms), part)
        ],
        cpu_us_per_timer=cpu.us_per_timer(count),
        audit=record,
        faults=[
            *(
                []
                if creates.accepted == count
                else [f"{what}: {count - creates.accepted} not accepted ({creates.refusal})"]
            ),
            *record.faults(what),
            *([] if settled else [f"{what}: not all completed within {GRACE_SECONDS:.0f} s"]),
        ],
    )
