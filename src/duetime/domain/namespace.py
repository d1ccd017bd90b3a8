"""Namespaces: scopes of ids, each with what holds for its timers."""

from msgspec import Struct

from duetime.domain.instants import parse_duration_ms
from duetime.domain.retry import RetryPolicy

DEFAULT_NAMESPACE = "default"
DEFAULT_SHARDS = 16
MAX_SHARDS = 4096


class NamespaceOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an operator may set for one namespace, and change later.

    `retry_policy` is for timers of the v1 API that come without one. `retention_seconds` is how
    long finished timers are kept, 0 for ever. `concurrency` is how many callbacks of the
    namespace may be under way at once on all nodes together. `max_payload_bytes` is the largest
    payload of a timer. None stands for what the service is set to; for `concurrency` that is
    no limit of its own.
    """

    retry_policy: RetryPolicy = RetryPolicy()
    retention_seconds: int | None = None
    concurrency: int | None = None
    max_payload_bytes: int | None = None


class Namespace(Struct, frozen=True):
    """A scope of ids. `num_shards` never changes once the namespace exists."""

    name: str
    num_shards: int = DEFAULT_SHARDS
    options: NamespaceOptions = NamespaceOptions()


class WantedNamespace(Struct, frozen=True):
    """A namespace that is to exist. None stands for whatever an existing one has, and for the
    defaults of a new one."""

    name: str
    num_shards: int | None = None
    options: NamespaceOptions | None = None


def parse_retention_seconds(text: str) -> int:
    """Seconds of a duration such as "7d"; "0s" is 0, for ever.

    Raises ValueError, with a message for the person who wrote it. A part of a second is refused
    rather than rounded: what is left of it could be nothing, and nothing is for ever.
    """
    duration_ms = parse_duration_ms(text)
    if duration_ms % 1_000:
        raise ValueError('must be a duration in whole seconds such as "7d", or "0s" for ever')
    return duration_ms // 1_000
