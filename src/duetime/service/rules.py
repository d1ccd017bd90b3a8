"""The limits that an operator may set on what is accepted."""

from msgspec import Struct


class TimerRules(Struct, frozen=True, kw_only=True):
    """`min_delay_ms` is how far ahead an instant must be at least, on create and on change."""

    min_delay_ms: int = 5_000
    max_payload_bytes: int = 262_144
    max_metadata_bytes: int = 65_536
