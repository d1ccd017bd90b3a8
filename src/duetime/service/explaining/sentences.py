"""The sentences of an explanation, for people who are in a hurry."""

import shlex
from collections.abc import Mapping
from typing import assert_never

from duetime.domain.callback import BusCallback, HttpCallback
from duetime.domain.instants import MICROSECONDS_PER_MS, format_duration
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.timer import Attempt, Timer
from duetime.service.explaining.explanation import Period

PAGE = "how-to/explain-a-timer"
"""The page of the documentation with a section for each cause."""


AT_ONCE = 5_000
"""Microseconds that a node may take to send a timer without being busy."""


def section_of(cause: WaitCause) -> str:
    return f"{PAGE}#{cause.replace('_', '-')}"


def length_text(microseconds: int) -> str:
    """A duration in two units at most, such as `3.2 ms`, `5.35 s`, `2m 4s` or `3d 4h`."""
    ms = microseconds / MICROSECONDS_PER_MS
    if ms < 1:
        return f"{ms:.2f} ms"
    if ms < 1_000:
        return f"{ms:.0f} ms" if ms >= 100 else f"{ms:.1f} ms"
    seconds = ms / 1_000
    if seconds < 60:
        return f"{seconds:.2f} s"
    text = format_duration(round(seconds) * 1_000)
    return _in_two_units(text)


def _in_two_units(text: str) -> str:
    parts: list[str] = []
    for character in text:
        if character.isdigit() and (not parts or parts[-1][-1].isalpha()):
            parts.append("")
        parts[-1] += character
    return " ".join(parts[:2])


def endpoint_text(timer: Timer) -> str:
    """The callback's target, without what may be secret in a URL."""
    callback = timer.callback
    if isinstance(callback, HttpCallback):
        scheme, _, rest = callback.url.partition("://")
        authority = rest.partition("/")[0].partition("?")[0].partition("#")[0]
        return f"{scheme}://{authority.rpartition('@')[2]}"
    return "the bus" if isinstance(callback, BusCallback) else "the NATS subject"


def sentence_of(
    period: Period, following: Period | None, timer: Timer, attempts: Mapping[int, Attempt]
) -> str:
    """One sentence about a period, without its length, given the one that follows it."""
    endpoint = endpoint_text(timer)
    made, before = attempts.get(period.attempt), attempts.get(period.attempt - 1)
    if (
        before is not None
        and before.answered_at is None
        and period.cause in (WaitCause.NODE_DOWN, WaitCause.FAILOVER, WaitCause.HANDOVER)
    ):
        return (
            f"The node of attempt {before.number} ended before an answer was recorded, and nobody"
            " else could go on."
        )
    match period.cause:
        case WaitCause.CLAIM:
            return "It was due, but not claimed yet: its node was behind with claims."
        case WaitCause.ENGINE if period.microseconds < AT_ONCE:
            if following is not None and following.cause is WaitCause.ENDPOINT:
                return "It was sent at once."
            return "It was claimed, and its turn had come."
        case WaitCause.ENGINE:
            return "It was claimed and due, but its node was busy or stood still."
        case WaitCause.LANE:
            return f"{endpoint} had as many callbacks under way as its lane's window allows."
        case WaitCause.SLOTS:
            return "The node had no slot free (DELIVERY_CONCURRENCY) for endpoints like this one."
        case WaitCause.BREAKER:
            return f"The breaker of {endpoint} was open: it kept failing or hanging."
        case WaitCause.PAUSED:
            return f"An operator had paused {endpoint}."
        case WaitCause.QUOTA:
            namespace = timer.key.namespace
            return f"Namespace '{namespace}' had as many callbacks under way as it may."
        case WaitCause.SHORTAGE:
            return "The node lacked a resource: descriptors, ports, memory or a key (engine.short)."
        case WaitCause.STORE:
            return "The store was away, or took long to answer."
        case WaitCause.CLOCK:
            return "The node's clock was set forward past it, or the machine was suspended."
        case WaitCause.HANDOVER:
            return "Its shard was moving from one node to another."
        case WaitCause.FAILOVER:
            return "The node that owned its shard was gone; another one took over."
        case WaitCause.NODE_DOWN:
            return "No node was running that owned its shard."
        case WaitCause.NOT_RECORDED:
            return "Not recorded: the node that knew is another one, is gone, or has forgotten it."
        case WaitCause.ACCEPTED_LATE:
            return "It was created after the instant that it asked for."
        case WaitCause.RETRY_POLICY:
            return f"Attempt {period.attempt} {_failure(made)}; its retry was planned for later."
        case WaitCause.ENDPOINT:
            return f"Attempt {period.attempt} was under way: {endpoint} {_answer(made)}."
        case _ as unreachable:
            assert_never(unreachable)


def _failure(attempt: Attempt | None) -> str:
    if attempt is None or attempt.error is None:
        return "did not succeed"
    if attempt.outcome is AttemptOutcome.INTERRUPTED:
        return "was interrupted"
    return f"failed ({attempt.error})"


def _answer(attempt: Attempt | None) -> str:
    if attempt is None:
        return "has not answered yet"
    if attempt.error is None:
        return "took that long to answer"
    return f"took that long until: {attempt.error}"


def advice_of(cause: WaitCause, timer: Timer) -> str:
    """The steps to take about a cause of this timer's waits. Commands can be pasted into a
    shell."""
    return _ADVICE[cause].replace("NAMESPACE", shlex.quote(timer.key.namespace))


_ADVICE: Mapping[WaitCause, str] = {
    WaitCause.CLAIM: "See lateness_ms in `duetime health`: if all timers are late, add nodes or"
    " find out what keeps this one busy.",
    WaitCause.ENGINE: "Look for CPU load, a paused process or a suspended machine at that time.",
    WaitCause.LANE: "Make the receiver quicker, or let it take more at once"
    " (DELIVERY_CONCURRENCY_PER_ENDPOINT).",
    WaitCause.SLOTS: "Raise DELIVERY_CONCURRENCY, or find the endpoints that hang with"
    " `duetime endpoints`.",
    WaitCause.BREAKER: "Mend the receiver. `duetime endpoints`, with a key for all namespaces,"
    " shows its last error. The breaker closes by itself with the first answer.",
    WaitCause.PAUSED: "`duetime endpoints resume`, with an admin key for all namespaces, lets it"
    " go on.",
    WaitCause.QUOTA: "Raise the namespace's limit with `duetime namespaces set NAMESPACE"
    " --concurrency N`, or make its receivers quicker.",
    WaitCause.SHORTAGE: "The log line engine.short names the resource and what to do.",
    WaitCause.STORE: "Look at the database: its load, its disk and the network to it.",
    WaitCause.CLOCK: "Let NTP keep the clock, and see clock.jumped in the log.",
    WaitCause.HANDOVER: "Nothing to do: nodes came or went in order.",
    WaitCause.FAILOVER: "Find out why the node ended. LEASE_SECONDS bounds the time that a"
    " fail-over takes.",
    WaitCause.NODE_DOWN: "Find out why the service was down. Two nodes on PostgreSQL survive the"
    " loss of one.",
    WaitCause.NOT_RECORDED: "Look at the logs of all nodes at that time.",
    WaitCause.ACCEPTED_LATE: "Create timers before their instants; a queue in front of the service"
    " may have been slow.",
    WaitCause.RETRY_POLICY: "Mend the receiver, or change the timer's retry policy.",
    WaitCause.ENDPOINT: "Make the receiver answer sooner: accept the callback, then do the work.",
}
"""Steps to take about each cause. NAMESPACE stands for the timer's."""
