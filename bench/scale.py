"""How much is measured."""

import msgspec


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    creates: int
    warm_up: int
    posts: int
    client_rounds: int
    burst: int
    burst_rounds: int
    steady_per_second: int
    steady_seconds: int
    stored: int
    """Timers that are pending, and as many again that are finished, in the loaded store."""
    idle_seconds: float


FULL = Scale(
    creates=60_000,
    warm_up=2_000,
    posts=100_000,
    client_rounds=3,
    burst=10_000,
    burst_rounds=3,
    steady_per_second=500,
    steady_seconds=20,
    stored=1_000_000,
    idle_seconds=5.0,
)

QUICK = Scale(
    creates=6_000,
    warm_up=500,
    posts=10_000,
    client_rounds=3,
    burst=1_000,
    burst_rounds=3,
    steady_per_second=500,
    steady_seconds=2,
    stored=50_000,
    idle_seconds=2.0,
)
