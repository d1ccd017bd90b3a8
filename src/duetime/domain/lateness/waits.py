"""Waits: the time from the instant at which an attempt was due to its sending, cause by cause."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from duetime.domain.instants import MICROSECONDS_PER_MS, Instant
from duetime.domain.outcome import AttemptOutcome
from duetime.domain.timer import Attempt, Claim, Timer, Wait
from duetime.domain.transitions import was_due_at

SHORTEST_WAIT = MICROSECONDS_PER_MS
"""Microseconds. A shorter wait is part of the one beside it: it tells nobody anything."""

MAX_WAITS = 12
"""Waits of an attempt that are kept in their order. Beyond that, a wait is added to the earlier one
of the same cause."""


class WaitCause(StrEnum):
    """Why a timer was not sent. The words are stored; they never change meaning."""

    CLAIM = "claim"
    """It was due and not claimed yet: its node was behind."""

    ENGINE = "engine"
    """It was claimed and its turn had come, but its node was busy or stood still."""

    LANE = "lane"
    """Its endpoint had as many attempts under way as its lane allows."""

    SLOTS = "slots"
    """No slot of the node was free for endpoints of this standing."""

    BREAKER = "breaker"
    """The breaker of its endpoint was open."""

    PAUSED = "paused"
    """An operator had paused its endpoint."""

    QUOTA = "quota"
    """Its namespace had as many attempts under way as its `concurrency` allows."""

    SHORTAGE = "shortage"
    """The node lacked a resource: descriptors, ports, memory, a key."""

    STORE = "store"
    """The store was away, or took long to answer a claim."""

    CLOCK = "clock"
    """The node's clock was set forward past the instant."""

    HANDOVER = "handover"
    """Its shard was on its way from one node to another."""

    FAILOVER = "failover"
    """The node that owned its shard was gone, until another one took over."""

    NODE_DOWN = "node_down"
    """No node was running."""

    NOT_RECORDED = "not_recorded"
    """The node that knew is gone, or has forgotten it."""

    # Found when a timer is explained, and never stored.

    ACCEPTED_LATE = "accepted_late"
    """It was created after its instant."""

    RETRY_POLICY = "retry_policy"
    """An attempt failed, and the next one was planned for later."""

    ENDPOINT = "endpoint"
    """An attempt was under way: connecting, sending, and waiting for the answer."""


class Interval(NamedTuple):
    """A time in which timers waited for a known cause."""

    from_at: Instant
    to_at: Instant
    cause: WaitCause


def waiting_since(claim: Claim) -> Instant:
    """The instant from which an attempt is late: when it was due, or when the timer was created if
    that was later. After an interrupted attempt, it waits since that one ended or was claimed."""
    return wait_start(was_due_at(claim), claim.created_at, claim.attempts)


def wait_start(due_at: Instant, created_at: Instant, before: Sequence[Attempt]) -> Instant:
    """The same for an attempt that was due at `due_at`, after the attempts `before` it."""
    since = max(due_at, created_at)
    if before and before[-1].outcome is AttemptOutcome.INTERRUPTED:
        since = max(since, before[-1].answered_at or before[-1].claimed_at)
    return since


def with_wait(waits: list[Wait], cause: str, microseconds: int) -> None:
    """Add a wait at the end."""
    if microseconds <= 0:
        return
    if waits and (waits[-1].cause == cause or microseconds < SHORTEST_WAIT):
        waits[-1] = Wait(waits[-1].cause, waits[-1].microseconds + microseconds)
    elif waits and waits[-1].microseconds < SHORTEST_WAIT:
        short = waits.pop()
        with_wait(waits, cause, short.microseconds + microseconds)
    elif len(waits) >= MAX_WAITS and (same := _position_of(cause, waits)) is not None:
        waits[same] = Wait(cause, waits[same].microseconds + microseconds)
    else:
        waits.append(Wait(cause, microseconds))


def with_time(
    waits: list[Wait],
    from_at: Instant,
    to_at: Instant,
    claimed_at: Instant,
    known: Iterable[Interval] = (),
) -> None:
    """Add the time from one instant to another: `known` causes first, then the time before the
    claim and the time after it. Intervals that begin earlier go first."""
    for interval in sorted(known):
        begin, end = max(interval.from_at, from_at), min(interval.to_at, to_at)
        if begin < end:
            _with_engine_time(waits, from_at, begin, claimed_at)
            with_wait(waits, interval.cause, end - begin)
            from_at = end
    _with_engine_time(waits, from_at, to_at, claimed_at)


def _with_engine_time(
    waits: list[Wait], from_at: Instant, to_at: Instant, claimed_at: Instant
) -> None:
    claim_ends = min(max(claimed_at, from_at), to_at)
    with_wait(waits, WaitCause.CLAIM, claim_ends - from_at)
    with_wait(waits, WaitCause.ENGINE, to_at - claim_ends)


def _position_of(cause: str, waits: Sequence[Wait]) -> int | None:
    return next((place for place, wait in enumerate(waits) if wait.cause == cause), None)


def first_of_firing(timer: Timer) -> int:
    """Position of the first remembered attempt of the current firing; the number of attempts if
    none of them belongs to it."""
    made = timer.attempt - (timer.claimed_at is not None)
    if made <= 0:
        return len(timer.attempts)
    for position in range(len(timer.attempts) - 1, -1, -1):
        if timer.attempts[position].number == 1:
            return position
    return 0
