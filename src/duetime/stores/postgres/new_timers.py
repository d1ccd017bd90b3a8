"""Creating timers that are all new, which is cheaper than being ready for any that is not."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeVar

from duetime.domain.timer import Timer
from duetime.stores.postgres.rows import (
    callback_text,
    command_orders_of,
    metadata_text,
    retry_policy_text,
    storable_or_none,
)

Value = TypeVar("Value")

CREATE_NEW = """
    SELECT create_new_timers(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21)
"""

_SEPARATOR = "\x1f"
_BYTES = 16
"""Of a uuid, and of a fingerprint."""

_by_id = attrgetter("key.id")
_by_key = attrgetter("key")


def new_timer_values(timers: Sequence[Timer], *, look: bool) -> list[Any] | None:
    """Values for CREATE_NEW, with the timers in the order of their keys; None when they cannot be
    put into its words. `look` says whether to search where timers are no longer pending.

    The driver spends more time on an array than on anything else here, so there are few of them.
    """
    namespace, namespaces = _of_all([timer.key.namespace for timer in timers])
    timers = sorted(timers, key=_by_key if namespaces else _by_id)
    if namespaces:
        namespaces = [timer.key.namespace for timer in timers]
    ids = _joined([timer.key.id for timer in timers])
    delivery_ids = _joined([timer.delivery_id for timer in timers])
    callbacks = _joined([callback_text(timer.callback) for timer in timers])
    uuids = b"".join([timer.timer_uuid for timer in timers])
    fingerprints = b"".join([timer.fingerprint or b"" for timer in timers])
    whole = _BYTES * len(timers)
    if ids is None or delivery_ids is None or callbacks is None:
        return None
    if len(uuids) != whole or len(fingerprints) not in (0, whole):
        return None
    execute_ats = [timer.execute_at for timer in timers]
    due_ats = [timer.due_at for timer in timers]
    policy, policies = _of_all([timer.retry_policy for timer in timers])
    return [
        look,
        _SEPARATOR,
        ids,
        delivery_ids,
        callbacks,
        uuids,
        fingerprints or None,
        [timer.shard for timer in timers],
        execute_ats,
        due_ats if due_ats != execute_ats else [],
        namespace,
        namespaces,
        *_of_all([timer.created_at for timer in timers]),
        *_of_all([timer.updated_at for timer in timers]),
        retry_policy_text(policy),
        [retry_policy_text(each) for each in policies],
        [metadata_text(each) for each in _of_any([timer.metadata for timer in timers])],
        [storable_or_none(each) for each in _of_any([timer.correlation_id for timer in timers])],
        command_orders_of(timers),
    ]


def _joined(texts: list[str]) -> str | None:
    """None if they could not be told apart again."""
    joined = _SEPARATOR.join(texts)
    return joined if joined and joined.count(_SEPARATOR) == len(texts) - 1 else None


def _of_all(values: list[Value]) -> tuple[Value | None, list[Value]]:
    """The value, if it is the same for all; or all of them."""
    first = values[0]
    return (first, []) if values.count(first) == len(values) else (None, values)


def _of_any(values: list[Value | None]) -> list[Value | None]:
    """All of them, unless nobody has one."""
    return [] if values.count(None) == len(values) else values
