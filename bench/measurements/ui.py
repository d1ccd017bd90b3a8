"""The first page of the Web UI, and the cost of 200 tabs that are left open."""

import time
from statistics import median

import msgspec

from bench.harness.open_tabs import Tabs
from bench.harness.percentiles import Percentiles, percentiles_of
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.measurements.firing import Round, run_round
from bench.scale import V1Scale

PAGE = "/ui"
REQUESTS = 200
PER_SECOND = 200
ROUNDS = 3
VIEWS = (
    *(["/ui"] * 160),
    *(["/ui/timers"] * 30),
    *(f"/ui/timers?status=completed&limit={20 if number % 2 else 100}" for number in range(5)),
    "/ui/timers?sort=execute_at",
    "/ui/endpoints",
    "/ui/cluster",
    "/ui/namespaces",
    "/ui/operations",
)
"""Pages of the open tabs."""


class UiFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`cold_ms` is the first page that a new process makes, `warm` the next ones. Rounds without
    and with tabs take turns; their figures are medians. CPU is a share of a core."""

    cold_ms: float
    warm: Percentiles
    tabs: int
    updates_per_second: float
    alone: list[Percentiles]
    beside: list[Percentiles]
    cpu_alone: float
    cpu_beside: float
    faults: list[str]

    @property
    def cpu_grows_by(self) -> float:
        return self.cpu_beside - self.cpu_alone

    @property
    def p99_grows_by_ms(self) -> float:
        return median(each.p99_ms for each in self.beside) - median(
            each.p99_ms for each in self.alone
        )


def measure_ui(server: Server, receiver: Receiver, scale: V1Scale) -> UiFigures:
    """The server has just been started."""
    cold_ms, *warm_ms = [_request_ms(server) for _ in range(1 + REQUESTS)]
    seconds = scale.busy_seconds
    alone, beside = [], []
    faults: list[str] = []
    updates = 0
    for _ in range(ROUNDS):
        alone.append(_turn("UI, no tabs", server, receiver, seconds))
        with Tabs(server.port, server.api_key, VIEWS) as tabs:
            before = tabs.count()
            beside.append(_turn("UI, open tabs", server, receiver, seconds))
            after = tabs.count()
        updates += after.updates - before.updates
        if after.open < len(VIEWS):
            faults.append(f"UI: only {after.open} of {len(VIEWS)} tabs stayed open")
    for each in (*alone, *beside):
        faults += each.round.faults
    return UiFigures(
        cold_ms=round(cold_ms, 1),
        warm=percentiles_of(warm_ms),
        tabs=len(VIEWS),
        updates_per_second=round(updates / sum(each.seconds for each in beside), 1),
        alone=[each.round.lateness for each in alone],
        beside=[each.round.lateness for each in beside],
        cpu_alone=median(each.cpu for each in alone),
        cpu_beside=median(each.cpu for each in beside),
        faults=faults,
    )


def _request_ms(server: Server) -> float:
    started = time.perf_counter()
    server.read(PAGE)
    return (time.perf_counter() - started) * 1_000


class _Turn(msgspec.Struct, frozen=True):
    """A round with its length and the share of a core that the server took in all of it, from the
    first create on."""

    round: Round
    seconds: float
    cpu: float


def _turn(what: str, server: Server, receiver: Receiver, seconds: int) -> _Turn:
    cpu_before, started = server.cpu_seconds(), time.perf_counter()
    done = run_round(what, [server], receiver, PER_SECOND * seconds, 1_000_000 // PER_SECOND)
    passed = time.perf_counter() - started
    return _Turn(done, passed, (server.cpu_seconds() - cpu_before) / passed)
