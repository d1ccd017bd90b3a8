"""Which namespaces are accepted, however they are asked for."""

from duetime.domain.errors import InvalidInput
from duetime.domain.instants import format_duration
from duetime.domain.namespace import MAX_SHARDS, Namespace
from duetime.service.key_text import check_key_text
from duetime.service.retry_limits import check_retry_policy

MAX_RETENTION_SECONDS = 36_500 * 86_400
MAX_CONCURRENCY = 65_536
MAX_PAYLOAD_BYTES = 16 * 2**20


def check_namespace(namespace: Namespace) -> None:
    """Raises `InvalidInput`."""
    check_key_text("namespace", namespace.name)
    options = namespace.options
    _check_range("num_shards", namespace.num_shards, 1, MAX_SHARDS)
    check_retry_policy(options.retry_policy)
    _check_retention(options.retention_seconds)
    _check_range("concurrency", options.concurrency, 1, MAX_CONCURRENCY)
    _check_range("max_payload_bytes", options.max_payload_bytes, 1, MAX_PAYLOAD_BYTES)


def _check_retention(seconds: int | None) -> None:
    if seconds is not None and not 0 <= seconds <= MAX_RETENTION_SECONDS:
        longest = format_duration(MAX_RETENTION_SECONDS * 1_000)
        raise InvalidInput("retention", f"must be at most {longest}, or 0s for ever")


def _check_range(field: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise InvalidInput(field, f"must be from {low} to {high}")
