"""The limits that an operator may set on what is accepted."""

from msgspec import Struct

from duetime.domain.callback import DEFAULT_TIMEOUT_MS


class TimerRules(Struct, frozen=True, kw_only=True):
    """What one front door accepts.

    `min_delay_ms` is how far ahead an instant must be at least, on create and on change. With
    `past_is_due` a new timer whose instant has passed is accepted, and due at once. With
    `default_retries` a timer without a retry policy gets the one of its namespace; without, it
    is not retried. `callback_timeout_ms` is that of callbacks which have none of their own.
    `max_payload_bytes` is for namespaces that have no limit of their own.
    """

    min_delay_ms: int = 5_000
    past_is_due: bool = False
    default_retries: bool = False
    callback_timeout_ms: int = DEFAULT_TIMEOUT_MS
    max_payload_bytes: int = 262_144
    max_metadata_bytes: int = 65_536
