"""Whether a create asks for the timer that exists already, and in what it differs if not."""

from msgspec import UNSET, Raw
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback, CallbackProtocol, HttpCallback
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer
from duetime.service.idempotency import canonical, with_canonical_payload


def differing_fields(wanted: Timer, existing: Timer, default_timeout_ms: int) -> list[str]:
    """The names of what the existing timer has otherwise than it was asked for. Without any, the
    create is a repeat: it asks for the same instant, callback and policy.

    A timer that has fired and was rescheduled is also what it was at first: whoever did not get
    the answer to a create asks for the first instant again.
    """
    fields = []
    firings = {attempt.due_at for attempt in existing.attempts if attempt.number == 1}
    if wanted.execute_at not in firings | {existing.execute_at}:
        fields.append("execute_at")
    if _retries(wanted) != _retries(existing):
        fields.append("retry_policy")
    fields += _differing_parts(wanted.callback, existing.callback, default_timeout_ms)
    if _canonical_or_none(wanted.metadata) != _canonical_or_none(existing.metadata):
        fields.append("metadata")
    return fields


def _retries(timer: Timer) -> RetryPolicy | None:
    """A policy that allows none is as good as no policy."""
    policy = timer.retry_policy
    return policy if policy is not None and policy.max_retries else None


def _differing_parts(wanted: Callback, existing: Callback, default_timeout_ms: int) -> list[str]:
    """Of callbacks of different types no more than that is told."""
    if type(wanted) is not type(existing):
        return ["callback.type"]
    # Of two protocols it is these that differ, not what each makes of no payload.
    none_is_null = _says_null(wanted) or _says_null(existing)
    ours = _plain(wanted, default_timeout_ms, none_is_null)
    theirs = _plain(existing, default_timeout_ms, none_is_null)
    if ours == theirs:
        return []
    return [
        f"callback.{part.removesuffix('_ms')}"
        for part in ours.__struct_fields__
        if getattr(ours, part) != getattr(theirs, part)
    ]


def _says_null(callback: Callback) -> bool:
    """Whether one without a payload says null."""
    return isinstance(callback, HttpCallback) and callback.protocol is CallbackProtocol.ANSWER


_NULL = Raw(b"null")


def _plain(callback: Callback, default_timeout_ms: int, none_is_null: bool) -> Callback:
    """Spelt out, so that callbacks of the same meaning are equal."""
    plain = replace(callback, timeout_ms=callback.timeout_ms or default_timeout_ms)
    if isinstance(plain, BusCallback):
        return plain
    plain = replace(plain, headers=plain.headers or None)
    if none_is_null and plain.payload is UNSET:
        plain = replace(plain, payload=_NULL)
    return with_canonical_payload(plain)


def _canonical_or_none(value: Raw | None) -> Raw | None:
    return None if value is None else canonical(value)
