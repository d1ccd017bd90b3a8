"""Timers that fire during the measurement: all at one instant, or at a steady rate."""

import time
from collections.abc import Sequence
from statistics import median

import msgspec

from bench.harness.load_generator import EvenInstants, Load, LoadFigures, generate_all
from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.receiver import Receiver
from bench.harness.server import Server, ServerCpu
from bench.limits.http_clients import CONCURRENCIES, PostFigures, Posts, measure_client
from bench.measurements.callback_audit import Audit, audit
from bench.scale import Scale
from bench.stores.store_under_test import Tally

CREATES_PER_SECOND_AT_LEAST = 3_000
GRACE_SECONDS = 30.0
POLL_SECONDS = 0.005


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """Timers that were created, delivered and settled.

    `settled_us` is when the server had answered that all are completed. `cpu_us_per_timer` counts
    from the end of the creates until then.
    """

    count: int
    first_due_us: int
    last_arrived_us: int
    settled_us: int
    cpu_us_per_timer: float
    lateness: Percentiles
    lateness_ms: list[float]
    arrivals_ms: list[float]
    """Milliseconds after the first due instant, ascending."""
    audit: Audit
    faults: list[str]


class BurstFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Medians of the rounds. Rates count from the due instant."""

    settled_per_second: float
    delivered_per_second: float
    cpu_us_per_timer: float
    lateness: Percentiles
    client: list[PostFigures]
    ratio: float
    rounds: list[Round]
    faults: list[str]

    @property
    def client_per_second(self) -> float:
        return max(each.per_second for each in self.client)


class SteadyFigures(msgspec.Struct, frozen=True, kw_only=True):
    per_second: int
    lateness: Percentiles
    round: Round
    faults: list[str]


def run_round(
    what: str, servers: Sequence[Server], receiver: Receiver, count: int, step_us: int
) -> Round:
    """Create `count` timers well before the first is due, and wait until all are settled.

    Several servers that share a store create equal shares.
    """
    share, rest = divmod(count, len(servers))
    assert not rest
    first_number = receiver.reserve(count)
    tally = servers[0].tally()
    lead_seconds = 2 + count / CREATES_PER_SECOND_AT_LEAST
    # Whole milliseconds, which every store keeps exactly.
    first_due_us = int((time.time() + lead_seconds) * 1_000) * 1_000
    creates = generate_all(
        [
            Load(
                port=server.port,
                api_key=server.api_key,
                other_keys=server.other_keys,
                callback_url=receiver.url,
                count=share,
                instants=EvenInstants(
                    first_us=first_due_us + place * step_us, step_us=step_us * len(servers)
                ),
                first_number=first_number + place * share,
            )
            for place, server in enumerate(servers)
        ]
    )
    cpu = ServerCpu(*servers)
    accepted = sum(each.accepted for each in creates)
    last_due_us = first_due_us + (count - 1) * step_us
    seconds_left = last_due_us / 1e6 - time.time() + GRACE_SECONDS
    receiver.wait_for(accepted, seconds_left)
    settled_us, settled = wait_until_settled(tally, accepted)
    cpu_us_per_timer = cpu.us_per_timer(count)
    callbacks = sorted(receiver.take(), key=lambda callback: callback.arrived_us)
    record = audit(callbacks, first_number, count)
    lateness_ms = [callback.lateness_ms for callback in callbacks]
    return Round(
        count=count,
        first_due_us=first_due_us,
        last_arrived_us=callbacks[-1].arrived_us if callbacks else 0,
        settled_us=settled_us,
        cpu_us_per_timer=cpu_us_per_timer,
        lateness=percentiles_of(lateness_ms),
        lateness_ms=lateness_ms,
        arrivals_ms=[(each.arrived_us - first_due_us) / 1_000 for each in callbacks],
        audit=record,
        faults=[
            *(f for each in creates for f in creation_faults(what, each, share, first_due_us)),
            *record.faults(what),
            *([] if settled else [f"{what}: not all completed within {GRACE_SECONDS:.0f} s"]),
        ],
    )


def wait_until_settled(tally: Tally, expected: int) -> tuple[int, bool]:
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        completed = tally.completed()
        now_us = time.time_ns() // 1_000
        if completed >= expected:
            return now_us, completed == expected
        if time.monotonic() > deadline:
            return now_us, False
        time.sleep(POLL_SECONDS)


def creation_faults(what: str, creates: LoadFigures, count: int, first_due_us: int) -> list[str]:
    faults = []
    if creates.accepted != count:
        faults.append(
            f"{what}: {count - creates.accepted} of {count} creates not accepted"
            f" ({creates.refusal or 'no answer'})"
        )
    if creates.finished_at_us >= first_due_us:
        late_ms = (creates.finished_at_us - first_due_us) / 1_000
        faults.append(f"{what}: the creates ended {late_ms:.0f} ms after the first due instant")
    return faults


def measure_burst(server: Server, receiver: Receiver, scale: Scale) -> BurstFigures:
    client = []
    for concurrency in CONCURRENCIES:
        posts = Posts(url=receiver.url, concurrency=concurrency, count=scale.posts)
        client.append(measure_client(posts))
        receiver.forget()
    rounds = [
        run_round(f"burst {number}", [server], receiver, scale.burst, step_us=0)
        for number in range(1, scale.burst_rounds + 1)
    ]

    def middle_rate(ends_us: list[int]) -> float:
        seconds = median(
            (end_us - each.first_due_us) / 1e6 for each, end_us in zip(rounds, ends_us, strict=True)
        )
        return round(scale.burst / seconds, 1) if seconds > 0 else 0.0

    settled_per_second = middle_rate([each.settled_us for each in rounds])
    by_settling = sorted(rounds, key=lambda each: each.settled_us - each.first_due_us)
    return BurstFigures(
        settled_per_second=settled_per_second,
        delivered_per_second=middle_rate([each.last_arrived_us for each in rounds]),
        cpu_us_per_timer=median(each.cpu_us_per_timer for each in rounds),
        lateness=by_settling[len(rounds) // 2].lateness,
        client=client,
        ratio=round(settled_per_second / max(each.per_second for each in client), 3),
        rounds=by_settling,
        faults=[fault for each in rounds for fault in each.faults],
    )


def measure_steady(server: Server, receiver: Receiver, scale: Scale) -> SteadyFigures:
    count = scale.steady_per_second * scale.steady_seconds
    step_us = 1_000_000 // scale.steady_per_second
    round_ = run_round("steady", [server], receiver, count, step_us)
    return SteadyFigures(
        per_second=scale.steady_per_second,
        lateness=round_.lateness,
        round=round_,
        faults=round_.faults,
    )
