"""Bounds for a machine with two cores, shared with the load generator and the receiver."""

import msgspec

from bench.scale import StoreName

# Smaller differences of lateness are noise of the machine.
LATENESS_NOISE_MS = 0.5


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """`burst_peer` is the rate of the fastest peer at the same work on the same machine.

    `batches_limit_ratio` is the least share of the bare table's rate, for batches and imports.
    A rate or ratio of 0 is no bound."""

    creates_per_second: int
    creates_echo_ratio: float = 0.0
    creates_p99_ms: float
    burst_per_second: int
    burst_peer: str = ""
    workers_burst_per_second: int = 0
    workers_burst_peer: str = ""
    steady_p50_ms: float
    steady_p99_ms: float
    loaded_tolerance: float
    memory_mb: float = 250.0
    start_seconds: float = 2.0
    idle_cpu_percent: float = 2.0
    batches_per_second: int = 0
    batches_limit_ratio: float = 0.0
    batches_memory_mb: float | None = None
    import_growth_mb: float = 20.0
    page_p99_ms: float = 20.0
    ui_page_ms: float = 100.0
    ui_tabs_cpu: float = 0.05
    """Share of a core that open tabs add."""
    ui_tabs_p99_ms: float = 1.0
    """Growth of the 99th percentile by open tabs."""
    ui_timers_p99_ms: float = 50.0
    hanging_p99_ms: float = 1_000.0
    crowd_p99_ms: float = 50.0
    slow_clients_p99_ms: float = 5.0
    """Growth of the 99th percentile by slow connections."""
    bus_commands_per_second: int
    bus_burst_per_second: int = 8_000
    bus_steady_p99_ms: float = 20.0


BOUNDS = {
    StoreName.SQLITE: Bounds(
        creates_per_second=12_000,
        creates_echo_ratio=0.5,
        creates_p99_ms=25.0,
        burst_per_second=14_000,
        steady_p50_ms=2.0,
        steady_p99_ms=8.0,
        loaded_tolerance=0.20,
        batches_limit_ratio=0.9,
        batches_memory_mb=100.0,
        bus_commands_per_second=10_000,
    ),
    StoreName.POSTGRESQL: Bounds(
        creates_per_second=10_000,
        creates_p99_ms=30.0,
        burst_per_second=12_500,
        burst_peer="pgqueuer 12,300",
        workers_burst_per_second=14_000,
        workers_burst_peer="pgqueuer 13,200",
        steady_p50_ms=3.0,
        steady_p99_ms=20.0,
        loaded_tolerance=0.25,
        batches_per_second=50_000,
        bus_commands_per_second=6_000,
    ),
}
