"""Valid timers with defaults for every field."""

from msgspec import Raw

from duetime.domain.callback import Callback, HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey, shard_of, timer_uuid_of
from duetime.domain.namespace import DEFAULT_NAMESPACE, DEFAULT_SHARDS
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer
from duetime.testing.virtual_clock import START_AT

DEFAULT_CALLBACK = HttpCallback(url="https://example.com/due")


def make_timer(
    timer_id: str = "timer-1",
    *,
    namespace: str = DEFAULT_NAMESPACE,
    num_shards: int = DEFAULT_SHARDS,
    execute_at: Instant = START_AT,
    callback: Callback = DEFAULT_CALLBACK,
    created_at: Instant = START_AT,
    delivery_id: str | None = None,
    retry_policy: RetryPolicy | None = None,
    metadata: Raw | None = None,
    correlation_id: str | None = None,
    command_order: int = 0,
    fingerprint: bytes | None = None,
) -> Timer:
    """A pending timer as the service would create it, in a namespace of `num_shards` shards."""
    key = TimerKey(namespace, timer_id)
    return Timer(
        key=key,
        shard=shard_of(timer_id, num_shards),
        timer_uuid=timer_uuid_of(key),
        delivery_id=delivery_id or f"delivery-of-{timer_id}",
        execute_at=execute_at,
        due_at=execute_at,
        callback=callback,
        created_at=created_at,
        updated_at=created_at,
        retry_policy=retry_policy,
        metadata=metadata,
        correlation_id=correlation_id,
        command_order=command_order,
        fingerprint=fingerprint,
    )
