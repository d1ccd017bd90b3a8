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
        self._min_delay = rules.min_delay_ms * MICROSECONDS_PER_MS
        # The timers of a batch have few endpoints, often one.
        self._last_good_url: str | None = None

    def check_instant(self, execute_at: Instant, now: Instant) -> None:
        delay = execute_at - now
        if delay > LONGEST_DELAY:
            raise InvalidInput("execute_at", "is too far in the future: at most 100 years")
        if self._rules.past_is_due:
            if execute_at < 0:
                raise InvalidInput("execute_at", "must not be before 1970")
            return
        if delay <= 0:
            raise InvalidInput("execute_at", "must be in the future")
        if delay < self._min_delay:
            seconds = self._rules.min_delay_ms / 1_000
            raise InvalidInput("execute_at", f"must be at least {seconds:g} s in the future")

    def check_callback(self, callback: Callback, namespace: Namespace) -> None:
        if not (
            isinstance(callback, HttpCallback)
            and callback.headers is None
            and callback.url == self._last_good_url
        ):
            self._destination.check(callback)
            if isinstance(callback, HttpCallback):
                self._last_good_url = callback.url
        timeout_ms = callback.timeout_ms
        if timeout_ms is not None and not 1 <= timeout_ms <= LONGEST_CALLBACK_TIMEOUT_MS:
            raise InvalidInput("callback.timeout", "must be from 1ms to 1h")
        if not isinstance(callback, BusCallback) and callback.payload is not UNSET:
            limit = namespace.options.max_payload_bytes
            _check_size(
                "callback.payload",
                callback.payload,
                self._rules.max_payload_bytes if limit is None else limit,
            )

    def check_metadata(self, metadata: Raw | None) -> None:
        if metadata is not None:
            _check_size("metadata", metadata, self._rules.max_metadata_bytes)

    def check_policy(self, policy: RetryPolicy | None) -> None:
        if policy is not None:
            check_retry_policy(policy)


def _check_size(field: str, value: Raw, max_bytes: int) -> None:
    if memoryview(value).nbytes > max_bytes:
        raise TooLarge(field, f"must be at most {max_bytes} bytes of JSON")
