"""Compares a create with the existing timer of its key: a repeat, or the fields that differ."""

from msgspec import UNSET, Raw
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback, CallbackProtocol, HttpCallback
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer
from duetime.service.idempotency import canonical, with_canonical_payload


def differing_fields(requested: Timer, existing: Timer, default_timeout_ms: int) -> list[str]:
    """The names of the fields in which the timers differ. A create without any is a repeat: it
    asks for the same instant or delay, callback and policy.

    A request with a delay repeats one with the same delay, whatever instant came of it and was
    given to the timer since. For a timer that has fired and was rescheduled, its earlier instants
    count as equal too: a client that missed the answer to a create asks for the first one again.
    """
    fields = []
    if requested.fingerprint is not None:
        if requested.fingerprint != existing.fingerprint:
            fields.append("execute_in")
    elif requested.execute_at != existing.execute_at:
        firings = {attempt.due_at for attempt in existing.attempts if attempt.number == 1}
        if requested.execute_at not in firings:
            fields.append("execute_at")
    if _retries(requested) != _retries(existing):
        fields.append("retry_policy")
    fields += _differing_parts(requested.callback, existing.callback, default_timeout_ms)
    if requested.metadata != existing.metadata and (
        _canonical_or_none(requested.metadata) != _canonical_or_none(existing.metadata)
    ):
        fields.append("metadata")
    return fields


def _retries(timer: Timer) -> RetryPolicy | None:
    """The policy; None when it allows no retry, which means the same as no policy."""
    policy = timer.retry_policy
    return policy if policy is not None and policy.max_retries else None


def _differing_parts(requested: Callback, existing: Callback, default_timeout_ms: int) -> list[str]:
    if type(requested) is not type(existing):
        return ["callback.type"]
    # When the protocols differ, an absent payload must not count as a second difference.
    none_is_null = _sends_null(requested) or _sends_null(existing)
    new = _plain(requested, default_timeout_ms, none_is_null)
    old = _plain(existing, default_timeout_ms, none_is_null)
    if new.payload != old.payload:
        new, old = with_canonical_payload(new), with_canonical_payload(old)
    if new == old:
        return []
    return [
        f"callback.{part.removesuffix('_ms')}"
        for part in new.__struct_fields__
        if getattr(new, part) != getattr(old, part)
    ]


def _sends_null(callback: Callback) -> bool:
    """Whether a callback of this protocol sends null when it has no payload."""
    return isinstance(callback, HttpCallback) and callback.protocol is CallbackProtocol.ANSWER


_NULL = Raw(b"null")


def _plain(callback: Callback, default_timeout_ms: int, none_is_null: bool) -> Callback:
    """The callback with its defaults spelt out."""
    timeout_ms = callback.timeout_ms or default_timeout_ms
    plain = replace(callback, timeout_ms=timeout_ms, traceparent=None)
    if isinstance(plain, BusCallback):
        return plain
    plain = replace(plain, headers=plain.headers or None)
    if none_is_null and plain.payload is UNSET:
        plain = replace(plain, payload=_NULL)
    return plain


def _canonical_or_none(value: Raw | None) -> Raw | None:
    return None if value is None else canonical(value)
