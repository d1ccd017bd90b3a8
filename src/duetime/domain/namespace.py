"""Namespaces: scopes of ids, each with options for its timers."""

from msgspec import Struct

from duetime.domain.instants import parse_duration_ms
from duetime.domain.lateness.objective import LatenessObjective
from duetime.domain.retry import RetryPolicy

DEFAULT_NAMESPACE = "default"
DEFAULT_SHARDS = 16

LIMITS = ("concurrency", "max_payload_bytes", "max_pending", "callback_networks")
"""Options that bind the people of a namespace, so that these cannot change them."""


class NamespaceOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options that an operator may set for one namespace, and change later.

    `retry_policy` is for timers of the v1 API that come without one. Finished timers are kept for
    `retention_seconds`, where 0 means for ever. At most `concurrency` callbacks of the namespace
    are under way at once, on all nodes together. `max_payload_bytes` is the size of the largest
    payload. At most `max_pending` timers are pending or executing; creates beyond it are refused.
    `callback_networks` is a list as in `CallbackNetworks`: callbacks go only where both it and that
    of the service allow. `slo` is the lateness that the namespace's attempts should have; it is
    measured, and changes nothing. None stands for the setting of the service, and for no limit in
    `concurrency` and `max_pending`. A namespace that is `deleting` takes no more timers.
    """

    retry_policy: RetryPolicy = RetryPolicy()
    retention_seconds: int | None = None
    concurrency: int | None = None
    max_payload_bytes: int | None = None
    max_pending: int | None = None
    callback_networks: str | None = None
    slo: LatenessObjective | None = None
    deleting: bool = False


class Namespace(Struct, frozen=True):
    """A scope of ids. `num_shards` never changes once the namespace exists."""

    name: str
    num_shards: int = DEFAULT_SHARDS
    options: NamespaceOptions = NamespaceOptions()


class ConfiguredNamespace(Struct, frozen=True):
    """A namespace that the configuration asks for. None keeps the value of an existing namespace
    and gives a new one the default."""

    name: str
    num_shards: int | None = None
    options: NamespaceOptions | None = None


def parse_retention_seconds(text: str) -> int:
    """Seconds of a duration such as "7d"; "0s" is 0, for ever.

    Raises ValueError with a message for the person who wrote the text. Fractions of a second are
    refused, because rounding one down to zero would keep timers for ever.
    """
    duration_ms = parse_duration_ms(text)
    if duration_ms % 1_000:
        raise ValueError('must be a duration in whole seconds such as "7d", or "0s" for ever')
    return duration_ms // 1_000
