"""A new timer in one sentence."""

from typing import assert_never

from msgspec import UNSET

from duetime.domain.callback import (
    RECEIVER_HOST,
    BusCallback,
    Callback,
    CallbackProtocol,
    HttpCallback,
    NatsCallback,
)
from duetime.domain.instants import Instant
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.redaction import shown_url
from duetime.domain.timer import Timer
from duetime.domain.wording import counted, relative, span
from duetime.web.forms.zones import instant_in_words

_MAX_URL_CHARACTERS = 120


def sentence_of(timer: Timer, now: Instant, *, exists: bool, zone: str = "UTC") -> str:
    """The future of a timer that is about to be created, with its instant in the zone and in
    UTC."""
    if exists:
        return "This timer exists already, with the same content: nothing would change."
    when = instant_in_words(timer.execute_at, zone)
    text = f"Duetime will {_deed(timer.callback)} on {when}, {relative(timer.execute_at, now)}"
    return f"{text}; {_tries(timer)}."


def _deed(callback: Callback) -> str:
    size = 0 if callback.payload is UNSET else len(callback.payload)
    match callback:
        case HttpCallback():
            if callback.protocol is CallbackProtocol.ANSWER:
                sent = f"the timer with {counted(size, 'byte')} of payload"
            else:
                sent = counted(size, "byte") if size else "an empty body"
            return f"POST {sent} to {_place(callback.url)}"
        case NatsCallback():
            stored = " and wait until a stream has it," if callback.ack else ""
            return f"publish {counted(size, 'byte')} on {callback.subject}{stored}"
        case BusCallback():
            return f"announce the timer on the bus, with {counted(size, 'byte')} of payload,"
        case _ as unreachable:
            assert_never(unreachable)


def _place(url: str) -> str:
    if f"://{RECEIVER_HOST}/" in url:
        return "the built-in receiver"
    shown = shown_url(url)
    return shown if len(shown) <= _MAX_URL_CHARACTERS else f"{shown[:_MAX_URL_CHARACTERS]}..."


def _tries(timer: Timer) -> str:
    if isinstance(timer.callback, BusCallback):
        return "it tries until the bus has it"
    if timer.retry_policy is None:
        return "one try"
    tries, over_ms = _planned(timer.retry_policy)
    return "one try" if tries == 1 else f"up to {tries} tries over {span(over_ms)}"


def policy_in_words(policy: RetryPolicy) -> str:
    """The members of a policy, for those who want to change one of them."""
    return (
        f"{policy.max_retries} retries; the first wait is {span(policy.initial_interval_ms)}, each "
        f"next one {policy.backoff_multiplier:g} times as long, up to "
        f"{span(policy.max_interval_ms)}; no retry later than {span(policy.max_duration_ms)} after "
        "the first attempt."
    )


def _planned(policy: RetryPolicy) -> tuple[int, float]:
    """The number of tries, and the time from the first to the last, if all of them fail at once
    and the waits are not stretched."""
    over_ms = 0.0
    for failures in range(1, policy.max_retries + 1):
        wait_ms = policy.interval_ms(failures)
        if over_ms + wait_ms > policy.max_duration_ms:
            return failures, over_ms
        over_ms += wait_ms
    return policy.max_retries + 1, over_ms
