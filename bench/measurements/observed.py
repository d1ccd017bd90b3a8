"""The CPU time of creates and firings with metrics and traces, beside the same process without."""

import math
import time
from collections.abc import Callable, Iterator

import msgspec

from bench.harness import switched_server
from bench.harness.load_generator import EvenInstants, Load, RandomInstants, generate
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.limits.echo import Echo
from bench.measurements.creates import DAY_US, HOUR_US
from bench.measurements.firing import (
    CREATES_PER_SECOND_AT_LEAST,
    GRACE_SECONDS,
    creation_faults,
    wait_until_settled,
)
from bench.scale import Scale
from bench.stores.store_under_test import StoreUnderTest

SAMPLED = "0.01"
"""The share of traces that are sampled."""

BURSTS_PER_TURN = 3
"""A turn lasts almost as long as the spans wait for their export."""

BURST_SECONDS = 1.2
SETTLE_SECONDS = 0.05
BEFORE_BURST_SECONDS = 0.25


class CpuTimes(msgspec.Struct, kw_only=True):
    """Microseconds of CPU time for each timer, over all turns."""

    observed_us: float = 0.0
    bare_us: float = 0.0

    @property
    def ratio(self) -> float:
        return round(self.observed_us / self.bare_us, 3) if self.bare_us else math.inf


class ObservedFigures(msgspec.Struct, frozen=True, kw_only=True):
    turns: int
    """Turns with observation, and as many without."""
    create: CpuTimes
    firing: CpuTimes
    faults: list[str]


def measure_observed(store: StoreUnderTest, receiver: Receiver, scale: Scale) -> ObservedFigures:
    with Echo() as collector:
        traces = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}",
            "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
            "OTEL_TRACES_SAMPLER_ARG": SAMPLED,
        }
        with Server(store, module="bench.harness.switched_server", settings=traces) as server:
            return _Observation(server, receiver, scale).measure()


class _Observation:
    def __init__(self, server: Server, receiver: Receiver, scale: Scale) -> None:
        self._server = server
        self._receiver = receiver
        self._count = scale.observed_burst
        self._turns = scale.observed_turns
        self._faults: list[str] = []

    def measure(self) -> ObservedFigures:
        firing = self._fire()
        create = self._in_turns(self._create)
        return ObservedFigures(turns=self._turns, create=create, firing=firing, faults=self._faults)

    def _in_turns(self, work: Callable[[], None]) -> CpuTimes:
        """The CPU time of the work, which is for as many timers as a turn has."""
        times, turn_timers = CpuTimes(), self._count * BURSTS_PER_TURN
        for is_observed in self._order():
            began = self._switch(is_observed)
            work()
            # Spans that the turn leaves behind are exported as part of it.
            took_us = 1e6 * (self._switch(False) - began) / turn_timers / self._turns
            if is_observed:
                times.observed_us += took_us
            else:
                times.bare_us += took_us
        times.observed_us, times.bare_us = round(times.observed_us, 1), round(times.bare_us, 1)
        return times

    def _order(self) -> Iterator[bool]:
        for number in range(self._turns):
            yield from (True, False) if number % 2 else (False, True)

    def _switch(self, is_observed: bool) -> float:
        """The server's CPU time so far, in seconds."""
        self._server.signal(switched_server.ON if is_observed else switched_server.OFF)
        time.sleep(SETTLE_SECONDS)
        return self._server.cpu_seconds()

    def _create(self) -> None:
        earliest_us = time.time_ns() // 1_000 + HOUR_US
        instants = RandomInstants(earliest_us=earliest_us, latest_exclusive_us=earliest_us + DAY_US)
        self._generate(instants, self._count * BURSTS_PER_TURN, 0, earliest_us)

    def _fire(self) -> CpuTimes:
        """All timers are created before, because a create costs as much as a firing. One in a
        hundred creates is traced, and its firing too, so that two in a hundred firings are."""
        bursts = 2 * self._turns * BURSTS_PER_TURN
        total = bursts * self._count
        tally, first_number = self._server.tally(), self._receiver.reserve(total)
        self._server.signal(switched_server.ON)
        lead_seconds = 3 + total / CREATES_PER_SECOND_AT_LEAST
        first_us = int((time.time() + lead_seconds) * 1_000) * 1_000
        for burst in range(bursts):
            due_us = first_us + int(burst * BURST_SECONDS * 1e6)
            number = first_number + burst * self._count
            self._generate(EvenInstants(first_us=due_us, step_us=0), self._count, number, first_us)
        next_turn_seconds = first_us / 1e6 - BEFORE_BURST_SECONDS
        _sleep_until(next_turn_seconds)

        def wait_for_bursts() -> None:
            nonlocal next_turn_seconds
            next_turn_seconds += BURSTS_PER_TURN * BURST_SECONDS
            _sleep_until(next_turn_seconds - 2 * SETTLE_SECONDS)

        times = self._in_turns(wait_for_bursts)
        arrived = self._receiver.wait_for(total, GRACE_SECONDS)
        _, are_settled = wait_until_settled(tally, total)
        self._receiver.forget()
        if arrived != total or not are_settled:
            self._faults.append(f"observed: {arrived} of {total} callbacks arrived")
        return times

    def _generate(
        self, instants: EvenInstants | RandomInstants, count: int, number: int, before_us: int
    ) -> None:
        creates = generate(
            Load(
                port=self._server.port,
                api_key=self._server.api_key,
                callback_url=self._receiver.url,
                count=count,
                instants=instants,
                first_number=number,
            )
        )
        self._faults += creation_faults("observed", creates, count, before_us)


def _sleep_until(seconds: float) -> None:
    time.sleep(max(0.0, seconds - time.time()))
