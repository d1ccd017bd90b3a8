"""Which retry policies are accepted, whichever door they come through."""

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import format_duration
from duetime.domain.retry import RetryPolicy

MAX_RETRIES = 100
MAX_MULTIPLIER = 100
MAX_INTERVAL_MS = 30 * 86_400_000
MAX_DURATION_MS = 365 * 86_400_000


def check_retry_policy(policy: RetryPolicy) -> None:
    """Raises `InvalidInput` that names the field as in `retry_policy.max_retries`."""
    if not 0 <= policy.max_retries <= MAX_RETRIES:
        raise InvalidInput("retry_policy.max_retries", f"must be from 0 to {MAX_RETRIES}")
    if not 1 <= policy.backoff_multiplier <= MAX_MULTIPLIER:
        raise InvalidInput("retry_policy.backoff_multiplier", f"must be from 1 to {MAX_MULTIPLIER}")
    _check_duration("initial_interval", policy.initial_interval_ms, MAX_INTERVAL_MS)
    _check_duration("max_interval", policy.max_interval_ms, MAX_INTERVAL_MS)
    _check_duration("max_retry_attempts_duration", policy.max_duration_ms, MAX_DURATION_MS)
    if policy.initial_interval_ms > policy.max_interval_ms:
        raise InvalidInput("retry_policy.initial_interval", "must not be longer than max_interval")


def _check_duration(name: str, duration_ms: int, longest_ms: int) -> None:
    if not 1 <= duration_ms <= longest_ms:
        problem = f"must be from 1ms to {format_duration(longest_ms)}"
        raise InvalidInput(f"retry_policy.{name}", problem)
