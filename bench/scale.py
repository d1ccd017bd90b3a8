"""Sizes of the measurements."""

from enum import StrEnum

import msgspec

SMALLEST_SIZE = 10_000


class StoreName(StrEnum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


class V1Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes for the Timer API v1, on either store."""

    batch_timers: int
    batch_warm_up: int
    import_timers: int
    paged: int
    """Pending timers, and as many finished ones, in the store whose pages are read."""
    page_requests: int
    hanging_timers: int
    hanging_endpoints: int
    busy_seconds: int
    healthy_timers: int
    retried_timers: int


class BusScale(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes for the bus, on either store."""

    commands: int
    burst: int
    burst_rounds: int
    steady_per_second: int
    steady_seconds: int


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    creates: int
    warm_up: int
    posts: int
    client_rounds: int
    burst: int
    """Timers of one instant."""
    burst_rounds: int
    observed_turns: int
    """Turns of three bursts with metrics and traces, and as many without."""
    observed_burst: int
    steady_per_second: int
    steady_seconds: int
    sizes: tuple[int, ...]
    """Sizes of the loaded stores, ascending: pending timers, and as many finished ones."""
    idle_seconds: float
    limit_rows: int = 0
    node_timers: int = 0
    node_timers_per_second: int = 1
    list_requests: int = 0
    backed_up: int = 0
    """Pending timers, and as many finished ones, in the store that is backed up."""
    copied: int = 0
    """Pending timers, and as many finished ones, in the file that is copied to PostgreSQL."""
    held_rates: tuple[int, ...] = ()
    """Creates and firings per second while a snapshot is held."""
    held_seconds: int = 0
    v1: V1Scale
    bus: BusScale

    @property
    def stored(self) -> int:
        return self.sizes[-1]


FULL_V1 = V1Scale(
    batch_timers=300_000,
    batch_warm_up=50_000,
    import_timers=1_000_000,
    paged=10_000_000,
    page_requests=200,
    hanging_timers=10_000,
    hanging_endpoints=10_000,
    busy_seconds=20,
    healthy_timers=1_000,
    retried_timers=10_000,
)
QUICK_V1 = V1Scale(
    batch_timers=30_000,
    batch_warm_up=5_000,
    import_timers=100_000,
    paged=100_000,
    page_requests=10,
    hanging_timers=1_000,
    hanging_endpoints=6_000,
    busy_seconds=5,
    healthy_timers=100,
    retried_timers=1_000,
)

FULL_BUS = BusScale(
    commands=100_000,
    burst=10_000,
    burst_rounds=3,
    steady_per_second=500,
    steady_seconds=20,
)
QUICK_BUS = BusScale(
    commands=10_000,
    burst=1_000,
    burst_rounds=3,
    steady_per_second=500,
    steady_seconds=2,
)

FULL = {
    StoreName.SQLITE: Scale(
        creates=60_000,
        warm_up=2_000,
        posts=100_000,
        client_rounds=3,
        burst=10_000,
        burst_rounds=3,
        observed_turns=20,
        observed_burst=4_000,
        steady_per_second=500,
        steady_seconds=20,
        sizes=(1_000_000,),
        idle_seconds=5.0,
        backed_up=175_000,
        v1=FULL_V1,
        bus=FULL_BUS,
    ),
    StoreName.POSTGRESQL: Scale(
        creates=60_000,
        warm_up=2_000,
        posts=100_000,
        client_rounds=3,
        burst=10_000,
        burst_rounds=5,
        observed_turns=20,
        observed_burst=4_000,
        steady_per_second=1_000,
        steady_seconds=30,
        sizes=(10_000, 100_000, 1_000_000, 10_000_000),
        idle_seconds=15.0,
        limit_rows=100_000,
        node_timers=100_000,
        node_timers_per_second=5_000,
        list_requests=50,
        copied=500_000,
        held_rates=(1_500, 4_000),
        held_seconds=600,
        v1=FULL_V1,
        bus=FULL_BUS,
    ),
}

QUICK = {
    StoreName.SQLITE: Scale(
        creates=6_000,
        warm_up=500,
        posts=10_000,
        client_rounds=3,
        burst=1_000,
        burst_rounds=3,
        observed_turns=2,
        observed_burst=500,
        steady_per_second=500,
        steady_seconds=2,
        sizes=(50_000,),
        idle_seconds=2.0,
        backed_up=20_000,
        v1=QUICK_V1,
        bus=QUICK_BUS,
    ),
    StoreName.POSTGRESQL: Scale(
        creates=6_000,
        warm_up=1_000,
        posts=10_000,
        client_rounds=3,
        burst=2_000,
        burst_rounds=2,
        observed_turns=2,
        observed_burst=500,
        steady_per_second=1_000,
        steady_seconds=2,
        sizes=(10_000, 100_000),
        idle_seconds=3.0,
        limit_rows=10_000,
        node_timers=5_000,
        node_timers_per_second=2_500,
        list_requests=10,
        copied=50_000,
        held_rates=(1_500, 4_000),
        held_seconds=60,
        v1=QUICK_V1,
        bus=QUICK_BUS,
    ),
}


def scale_of(
    store: StoreName,
    *,
    quick: bool,
    stored: int | None,
    burst: int | None,
    held_seconds: int | None = None,
) -> Scale:
    """`stored` replaces the largest size, including that for pages; `burst` the size of bursts,
    and `held_seconds` the time for which a snapshot is held."""
    scale = (QUICK if quick else FULL)[store]
    if held_seconds is not None:
        scale = msgspec.structs.replace(scale, held_seconds=held_seconds)
    if burst is not None:
        bus = msgspec.structs.replace(scale.bus, burst=burst)
        scale = msgspec.structs.replace(scale, burst=burst, bus=bus)
    if stored is None:
        return scale
    smaller = decades_below(stored) if len(scale.sizes) > 1 else []
    v1 = msgspec.structs.replace(scale.v1, paged=stored)
    return msgspec.structs.replace(scale, sizes=(*smaller, stored), v1=v1)


def decades_below(stored: int) -> list[int]:
    sizes = []
    size = SMALLEST_SIZE
    while size < stored:
        sizes.append(size)
        size *= 10
    return sizes
