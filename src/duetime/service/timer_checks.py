"""What is checked of a timer before it is written, whichever door it came through."""

from msgspec import UNSET, Raw

from duetime.domain.callback import BusCallback, Callback, HttpCallback
from duetime.domain.errors import InvalidInput, TooLarge
from duetime.domain.instants import LONGEST_DELAY, MICROSECONDS_PER_MS, Instant
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.ports.destination import Destination
from duetime.service.retry_limits import check_retry_policy
from duetime.service.rules import TimerRules

LONGEST_CALLBACK_TIMEOUT_MS = 3_600_000


class TimerChecks:
    """Each raises `InvalidInput` that names the field."""

    def __init__(self, destination: Destination, rules: TimerRules) -> None:
        self._destination = destination
        self._rules = rules
        self._min_delay = max(rules.min_delay_ms * MICROSECONDS_PER_MS, 1)
        # The timers of a batch have few endpoints, often one.
        self._last_good_url: str | None = None

    def check_instant(self, execute_at: Instant, now: Instant) -> None:
        delay = execute_at - now
        if self._min_delay <= delay <= LONGEST_DELAY:
            return  # As nearly all are.
        if delay > LONGEST_DELAY:
            raise InvalidInput("execute_at", "is too far in the future: at most 100 years")
        if self._rules.past_is_due:
            if execute_at < 0:
                raise InvalidInput("execute_at", "must not be before 1970")
            return
        if delay <= 0:
            raise InvalidInput("execute_at", "must be in the future")
        seconds = self._rules.min_delay_ms / 1_000
        raise InvalidInput("execute_at", f"must be at least {seconds:g} s in the future")

    def max_payload_bytes(self, namespace: Namespace) -> int:
        limit = namespace.options.max_payload_bytes
        return self._rules.max_payload_bytes if limit is None else limit

    def check_callback(self, callback: Callback, max_payload_bytes: int) -> None:
        if isinstance(callback, HttpCallback):
            if callback.url != self._last_good_url or callback.headers is not None:
                self._destination.check(callback)
                self._last_good_url = callback.url
            payload = callback.payload
        else:
            self._destination.check(callback)
            payload = UNSET if isinstance(callback, BusCallback) else callback.payload
        timeout_ms = callback.timeout_ms
        if timeout_ms is not None and not 1 <= timeout_ms <= LONGEST_CALLBACK_TIMEOUT_MS:
            raise InvalidInput("callback.timeout", "must be from 1ms to 1h")
        if payload is not UNSET and len(payload) > max_payload_bytes:
            raise _too_large("callback.payload", max_payload_bytes)

    def check_metadata(self, metadata: Raw | None) -> None:
        max_bytes = self._rules.max_metadata_bytes
        if metadata is not None and len(metadata) > max_bytes:
            raise _too_large("metadata", max_bytes)

    def check_policy(self, policy: RetryPolicy | None) -> None:
        if policy is not None:
            check_retry_policy(policy)


def _too_large(field: str, max_bytes: int) -> TooLarge:
    return TooLarge(field, f"must be at most {max_bytes} bytes of JSON")
