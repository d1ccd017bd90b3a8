"""Whether a create asks for the timer that exists already."""

from msgspec import UNSET, Raw
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback, CallbackProtocol, HttpCallback
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Timer
from duetime.service.idempotency import canonical, with_canonical_payload


def is_repeat(wanted: Timer, existing: Timer, default_timeout_ms: int) -> bool:
    """Whether the existing timer is what was asked for: the same instant, callback and policy.

    A timer that has fired and was rescheduled is also what it was at first: whoever did not get
    the answer to a create asks for the first instant again.
    """
    firings = {attempt.due_at for attempt in existing.attempts if attempt.number == 1}
    return (
        wanted.execute_at in firings | {existing.execute_at}
        and _retries(wanted) == _retries(existing)
        and _plain(wanted.callback, default_timeout_ms)
        == _plain(existing.callback, default_timeout_ms)
        and _canonical_or_none(wanted.metadata) == _canonical_or_none(existing.metadata)
    )


def _retries(timer: Timer) -> RetryPolicy | None:
    """A policy that allows none is as good as no policy."""
    policy = timer.retry_policy
    return policy if policy is not None and policy.max_retries else None


_NULL = Raw(b"null")


def _plain(callback: Callback, default_timeout_ms: int) -> Callback:
    """Spelt out, so that callbacks of the same meaning are equal."""
    plain = replace(callback, timeout_ms=callback.timeout_ms or default_timeout_ms)
    if not isinstance(plain, BusCallback):
        plain = replace(plain, headers=plain.headers or None)
    if isinstance(plain, HttpCallback) and plain.protocol is CallbackProtocol.ANSWER:
        # There a callback without a payload says null, too.
        plain = replace(plain, payload=_NULL if plain.payload is UNSET else plain.payload)
    return with_canonical_payload(plain)


def _canonical_or_none(value: Raw | None) -> Raw | None:
    return None if value is None else canonical(value)
