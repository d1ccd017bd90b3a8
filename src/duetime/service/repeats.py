"""Whether a create asks for the timer that exists already."""

from msgspec import Raw

from duetime.domain.timer import Timer
from duetime.service.idempotency import canonical, with_canonical_payload


def is_repeat(wanted: Timer, existing: Timer) -> bool:
    """Whether the existing timer is what was asked for: the same instant, callback and policy.

    A timer that has fired and was rescheduled is also what it was at first: whoever did not get
    the answer to a create asks for the first instant again.
    """
    firings = {attempt.due_at for attempt in existing.attempts if attempt.number == 1}
    return (
        wanted.execute_at in firings | {existing.execute_at}
        and wanted.retry_policy == existing.retry_policy
        and with_canonical_payload(wanted.callback) == with_canonical_payload(existing.callback)
        and _canonical_or_none(wanted.metadata) == _canonical_or_none(existing.metadata)
    )


def _canonical_or_none(value: Raw | None) -> Raw | None:
    return None if value is None else canonical(value)
