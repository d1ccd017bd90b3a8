"""Checks that every timer and namespace passes before it is written, whichever API it came by.

Each check raises `InvalidInput` with the name of the field. The limits are in `domain.limits`.
"""

from msgspec import UNSET, Raw, Struct

from duetime.domain.bulk import is_endpoint
from duetime.domain.callback import Callback, HttpCallback
from duetime.domain.errors import InvalidInput, TooLarge
from duetime.domain.instants import MICROSECONDS_PER_MS, Delay, Instant, format_duration
from duetime.domain.limits import (
    MAX_BACKOFF_MULTIPLIER,
    MAX_CALLBACK_TIMEOUT_MS,
    MAX_DELAY_MICROSECONDS,
    MAX_DELAY_YEARS,
    MAX_FILTER_CHARACTERS,
    MAX_KEY_CHARACTERS,
    MAX_METADATA_BYTES,
    MAX_NAMESPACE_CONCURRENCY,
    MAX_NAMESPACE_PENDING,
    MAX_PAYLOAD_BYTES,
    MAX_RETENTION_DAYS,
    MAX_RETRIES,
    MAX_RETRY_DURATION_MS,
    MAX_RETRY_INTERVAL_MS,
    MAX_SHARDS,
    MIN_BACKOFF_MULTIPLIER,
    MIN_CALLBACK_TIMEOUT_MS,
)
from duetime.domain.namespace import Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.callback_networks import CallbackNetworks, InvalidNetworks
from duetime.domain.security.redaction import refuse_redacted
from duetime.ports.destination import Destination

SHELL_CHARACTERS = frozenset(" \"'\\`$&|;<>()[]{}*?!#~")
"""Characters with a meaning to a shell."""

_SETTING = "(MIN_DELAY_SECONDS)"
"""The setting that `min_delay_ms` comes from, for the operator who reads the error."""


class TimerRules(Struct, frozen=True, kw_only=True):
    """The rules of one API.

    `min_delay_ms` is the shortest delay until an instant, on create and on change. With
    `past_is_due` a new timer whose instant has passed is accepted and due at once. With
    `default_retries` a timer without a retry policy gets the policy of its namespace; otherwise
    it is not retried. `callback_timeout_ms` applies to callbacks without a timeout of their own,
    `max_payload_bytes` to namespaces without a limit of their own.
    """

    min_delay_ms: int
    past_is_due: bool = False
    default_retries: bool = False
    callback_timeout_ms: int
    max_payload_bytes: int
    max_metadata_bytes: int = MAX_METADATA_BYTES


class TimerChecks:
    """The checks of a timer under the rules of one API."""

    def __init__(self, destination: Destination, rules: TimerRules) -> None:
        self._destination = destination
        self.rules = rules
        self._min_delay = max(rules.min_delay_ms * MICROSECONDS_PER_MS, 1)
        # The timers of a batch have few endpoints, often one.
        self._last_good_url: str | None = None

    def check_instant(self, execute_at: Instant | Delay, now: Instant) -> None:
        if isinstance(execute_at, Delay):
            self._check_delay(execute_at)
            return
        delay = execute_at - now
        if self._min_delay <= delay <= MAX_DELAY_MICROSECONDS:
            return
        if delay > MAX_DELAY_MICROSECONDS:
            problem = f"is too far in the future: at most {MAX_DELAY_YEARS} years"
            raise InvalidInput("execute_at", problem)
        if self.rules.past_is_due:
            if execute_at < 0:
                raise InvalidInput("execute_at", "must not be before 1970")
            return
        if delay <= 0:
            raise InvalidInput("execute_at", "must be in the future")
        seconds = self.rules.min_delay_ms / 1_000
        raise InvalidInput("execute_at", f"must be at least {seconds:g} s in the future {_SETTING}")

    def _check_delay(self, delay: Delay) -> None:
        if delay.ms * MICROSECONDS_PER_MS > MAX_DELAY_MICROSECONDS:
            raise InvalidInput("execute_in", f"is too long: at most {MAX_DELAY_YEARS} years")
        shortest_ms = 0 if self.rules.past_is_due else max(self.rules.min_delay_ms, 1)
        if delay.ms < shortest_ms:
            setting = f" {_SETTING}" if self.rules.min_delay_ms else ""
            problem = f"must be at least {format_duration(shortest_ms)}{setting}"
            raise InvalidInput("execute_in", problem)

    def max_payload_bytes(self, namespace: Namespace) -> int:
        limit = namespace.options.max_payload_bytes
        return self.rules.max_payload_bytes if limit is None else limit

    def check_callback(self, callback: Callback, max_payload_bytes: int) -> None:
        if isinstance(callback, HttpCallback):
            if callback.url != self._last_good_url or callback.headers is not None:
                self._check_destination(callback)
                self._last_good_url = callback.url
        else:
            self._check_destination(callback)
        payload = callback.payload
        timeout_ms = callback.timeout_ms
        if timeout_ms is not None:
            _check_duration(
                "callback.timeout", timeout_ms, MIN_CALLBACK_TIMEOUT_MS, MAX_CALLBACK_TIMEOUT_MS
            )
        if payload is not UNSET and len(payload) > max_payload_bytes:
            raise _too_large("callback.payload", max_payload_bytes)

    def _check_destination(self, callback: Callback) -> None:
        self._destination.check(callback)
        # Stored secrets are in place by now, so a shown one would be sent as it is.
        refuse_redacted(callback)

    def check_metadata(self, metadata: Raw | None) -> None:
        max_bytes = self.rules.max_metadata_bytes
        if metadata is not None and len(metadata) > max_bytes:
            raise _too_large("metadata", max_bytes)

    def check_policy(self, policy: RetryPolicy | None) -> None:
        if policy is not None:
            check_retry_policy(policy)


def check_key_text(field: str, text: str) -> None:
    """Every store can hold a text that passes, and read it back."""
    # Nearly all texts pass here.
    if text.isascii() and "\0" not in text and 0 < len(text) <= MAX_KEY_CHARACTERS:
        return
    if not 1 <= len(text) <= MAX_KEY_CHARACTERS:
        raise InvalidInput(field, f"must have 1 to {MAX_KEY_CHARACTERS} characters")
    check_storable_text(field, text)


def check_storable_text(field: str, text: str) -> None:
    """Refuse characters that some store cannot hold."""
    if "\0" in text:
        raise InvalidInput(field, "must not contain the character NUL")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInput(field, "must not contain half of a surrogate pair")


def check_filter_text(field: str, text: str | None, *, least: int = 1) -> None:
    """Refuse a text in a filter that is too short or too long. None is left out."""
    if text is None:
        return
    if not least <= len(text) <= MAX_FILTER_CHARACTERS:
        problem = f"must have {least} to {MAX_FILTER_CHARACTERS} characters, or be left out"
        raise InvalidInput(field, problem)
    check_storable_text(field, text)


def check_endpoint_filter(field: str, endpoint: str | None) -> None:
    check_filter_text(field, endpoint)
    if endpoint is not None and not is_endpoint(endpoint):
        problem = "must be a host or an origin without a path, such as https://app.example.com"
        raise InvalidInput(field, problem)


def check_retry_policy(policy: RetryPolicy) -> None:
    _check_range("retry_policy.max_retries", policy.max_retries, 0, MAX_RETRIES)
    _check_range(
        "retry_policy.backoff_multiplier",
        policy.backoff_multiplier,
        MIN_BACKOFF_MULTIPLIER,
        MAX_BACKOFF_MULTIPLIER,
    )
    for name, duration_ms, longest_ms in (
        ("initial_interval", policy.initial_interval_ms, MAX_RETRY_INTERVAL_MS),
        ("max_interval", policy.max_interval_ms, MAX_RETRY_INTERVAL_MS),
        ("max_retry_attempts_duration", policy.max_duration_ms, MAX_RETRY_DURATION_MS),
    ):
        _check_duration(f"retry_policy.{name}", duration_ms, 1, longest_ms)
    if policy.initial_interval_ms > policy.max_interval_ms:
        raise InvalidInput("retry_policy.initial_interval", "must not be longer than max_interval")


def check_typeable(name: str) -> None:
    """Refuse a name for a new namespace that a person could not type in a shell without quoting.
    Tenants of the bus are not typed, and have any name."""
    if name.startswith("-"):
        raise InvalidInput("namespace", "must not start with a hyphen")
    for character in name:
        if not character.isprintable() or character in SHELL_CHARACTERS:
            shown = repr(character) if character.isprintable() else f"U+{ord(character):04X}"
            problem = f"must not contain {shown}: people have to type it in a shell"
            raise InvalidInput("namespace", problem)


def check_namespace(namespace: Namespace) -> None:
    check_key_text("namespace", namespace.name)
    options = namespace.options
    _check_range("num_shards", namespace.num_shards, 1, MAX_SHARDS)
    check_retry_policy(options.retry_policy)
    _check_retention(options.retention_seconds)
    _check_range("concurrency", options.concurrency, 1, MAX_NAMESPACE_CONCURRENCY)
    _check_range("max_payload_bytes", options.max_payload_bytes, 1, MAX_PAYLOAD_BYTES)
    _check_range("max_pending", options.max_pending, 0, MAX_NAMESPACE_PENDING)
    if options.slo is not None and (problem := options.slo.problem()) is not None:
        raise InvalidInput("slo", problem)
    if options.callback_networks is not None:
        try:
            CallbackNetworks.parse(options.callback_networks)
        except InvalidNetworks as error:
            raise InvalidInput("callback_networks", f"must be {error}") from None


def _check_retention(seconds: int | None) -> None:
    if seconds is not None and not 0 <= seconds <= MAX_RETENTION_DAYS * 86_400:
        raise InvalidInput("retention", f"must be at most {MAX_RETENTION_DAYS}d, or 0s for ever")


def _check_range(field: str, value: float | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise InvalidInput(field, f"must be from {low} to {high}")


def _check_duration(field: str, duration_ms: int, shortest_ms: int, longest_ms: int) -> None:
    if not shortest_ms <= duration_ms <= longest_ms:
        raise InvalidInput(
            field, f"must be from {format_duration(shortest_ms)} to {format_duration(longest_ms)}"
        )


def _too_large(field: str, max_bytes: int) -> TooLarge:
    return TooLarge(field, f"must be at most {max_bytes} bytes of JSON")
