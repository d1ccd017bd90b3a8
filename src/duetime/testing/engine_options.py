"""Options for engines in tests."""

from msgspec.structs import replace

from duetime.engine import EngineOptions

_OPTIONS = EngineOptions(
    owner="test",
    horizon_ms=50,
    poll_seconds=5,
    batch_size=500,
    concurrency=4_096,
    concurrency_per_endpoint=1_024,
    retention_seconds=None,
    lease_seconds=10,
    clock_skew_limit_ms=500,
)


def engine_options(**changes: object) -> EngineOptions:
    """Options that suit most tests, with the fields that a test changes."""
    return replace(_OPTIONS, **changes)
