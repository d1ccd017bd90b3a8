"""The attempts under way: each claim is delivered, and its outcome goes to the settler."""

import asyncio
import random
from collections import deque
from contextlib import suppress
from functools import partial

import structlog
import uuid_utils

from duetime.domain.errors import LocalShortage
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant, format_instant
from duetime.domain.lateness.waits import SHORTEST_WAIT, WaitCause, waiting_since
from duetime.domain.outcome import Failed, NotSent, Outcome
from duetime.domain.timer import Claim, TimerStatus, Waits
from duetime.domain.transitions import (
    Settlement,
    holds,
    not_before,
    settlement_of,
    was_due_at,
)
from duetime.engine.held_leases import HeldLeases
from duetime.engine.lanes.lane import Lane
from duetime.engine.lanes.shortages import Shortages
from duetime.engine.meters import EngineMeters
from duetime.engine.settler import Settler
from duetime.engine.wait_log import Waited, WaitLog
from duetime.engine.wakeups import LocalWakeUps
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination

_log = structlog.get_logger()

LATELY_SECONDS = 60.0
"""Age up to which attempts count for the lateness."""


class Deliveries:
    """Makes attempts, each in a task of its own.

    Nothing is sent before its instant by the wall clock. Nothing is sent under a lease that may
    have expired, even if it expires while the destination connects: such a claim is dropped, and
    either another node recovers it or it is found again when the lease turns out to be still ours.
    A claim that could not be sent because this process lacks a resource is handed back, and is
    claimed again a little later.
    """

    def __init__(
        self,
        destination: Destination,
        settler: Settler,
        leases: HeldLeases,
        clock: Clock,
        wakeups: LocalWakeUps,
        meters: EngineMeters,
        wait_log: WaitLog,
    ) -> None:
        self._wait_log = wait_log
        self._destination = destination
        self._settler = settler
        self._leases = leases
        self._clock = clock
        self._wakeups = wakeups
        self._meters = meters
        self._tasks: dict[asyncio.Task[None], Claim] = {}
        self._sent_late: dict[str, tuple[Instant, Waits]] = {}
        """Attempts under way that were late, by delivery id: when they began, after which waits."""
        self._lateness = Lateness()
        self.shortages = Shortages(clock)
        self.has_dropped = False
        """Claims were dropped since this was last set to False."""
        self.abandoned: list[Claim] = []
        """Claims whose attempts a stop cut off. They may have arrived."""

    @property
    def claims(self) -> list[Claim]:
        return list(self._tasks.values())

    def sent(self, claim: Claim) -> tuple[Instant, Waits] | None:
        """When the claim's attempt began, and its waits, if it is under way."""
        if not holds(self._tasks.values(), claim):
            return None
        on_time = max(waiting_since(claim), claim.claimed_at)
        return self._sent_late.get(claim.delivery_id, (on_time, ()))

    def lateness_ms(self, percent: float) -> float | None:
        """None when nothing was sent within the last minute."""
        return self._lateness.percentile_ms(percent, self._clock.monotonic())

    def start(self, lane: Lane, claim: Claim, waited: Waited | None) -> None:
        task = asyncio.get_running_loop().create_task(self._occupy_slot(lane, claim, waited))
        self._tasks[task] = claim
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def stop(self, grace_seconds: float) -> None:
        """Let the attempts finish within the grace, and abandon the others.

        An abandoned claim stays executing in the store, and the next owner of its shard recovers
        it: whether it arrived is unknown, so it is tried again.
        """
        if not self._tasks:
            return
        _, abandoned = await asyncio.wait(set(self._tasks), timeout=grace_seconds)
        for task in abandoned:
            self.abandoned.append(self._tasks[task])
            task.cancel()
        if abandoned:
            _log.warning("engine.deliveries_abandoned", count=len(abandoned))
            await asyncio.wait(abandoned)

    async def _occupy_slot(self, lane: Lane, claim: Claim, waited: Waited | None) -> None:
        outcome, began_seconds = None, self._clock.monotonic()
        try:
            outcome = await self._deliver(lane, claim, waited)
        except asyncio.CancelledError:
            # The engine stops, so nothing takes the free slot.
            lane.abandoned(claim)
            raise
        except Exception:
            self._drop_current()
            _log.exception("attempt.broken", namespace=claim.namespace, id=claim.id)
        if self._sent_late:
            self._sent_late.pop(claim.delivery_id, None)
        lane.answered(claim, outcome, began_seconds, self._clock.monotonic())
        self._wakeups.check_room()

    async def _deliver(self, lane: Lane, claim: Claim, waited: Waited | None) -> Outcome | None:
        """The outcome; None when it says nothing about the endpoint."""
        if not self._leases.holds(claim):
            self._drop_current()
            return None
        # Read again right before sending: event loops fire their timers up to half a millisecond
        # early.
        now = self._clock.now()
        if now < not_before(claim):
            # The wall clock was set back while the claim waited, or since the retry was planned.
            self._settler.hand_back(claim, WaitCause.CLOCK, due_at=not_before(claim), now=now)
            return None
        late: int = lateness_of(claim, now)
        waits: Waits = ()
        if late >= SHORTEST_WAIT or claim.delivery_id in self._wait_log.remembered:
            waits = self._take_waits(claim, now, late, waited)
            self._sent_late[claim.delivery_id] = now, waits
            if claim.attempts:
                # The instant of a retry is put off whenever its claim is handed back.
                late = max(late, sum(wait.microseconds for wait in waits))
        recorded = self._lateness.record(late, self._clock.monotonic())
        try:
            outcome, is_of_endpoint = await self._outcome_of(claim)
        except NotSent:
            self._drop_current()
            return None
        except LocalShortage as shortage:
            self._lateness.forget(recorded)
            self._hand_back_short(claim, shortage, waits, now)
            return None
        settlement = settlement_of(
            claim,
            outcome,
            chance=random.random(),
            new_delivery_id=_new_delivery_id,
            waits=waits,
        )
        # First of all: whatever goes wrong from here on must not repeat the attempt.
        self._settler.add(claim.shard, settlement)
        self._meters.attempt_made(claim, lane.breaker.endpoint, outcome, late, settlement.status)
        if isinstance(outcome, Failed):
            self._log_failure(lane, claim, outcome, settlement)
            is_of_endpoint = is_of_endpoint and not outcome.is_final
        return outcome if is_of_endpoint else None

    def _take_waits(self, claim: Claim, now: Instant, late: int, waited: Waited | None) -> Waits:
        """The waits of the claim; none if they cannot be told, which must not keep it from being
        sent."""
        try:
            return self._wait_log.take_waits(claim, now, late, waited)
        except Exception:
            _log.exception("attempt.waits_broken", namespace=claim.namespace, id=claim.id)
            return ()

    def _hand_back_short(
        self, claim: Claim, shortage: LocalShortage, waits: Waits, tried_at: Instant
    ) -> None:
        now = self._clock.now()
        deferred_to = self.shortages.deferred_to(shortage.resource, now)
        due_at = max(deferred_to, not_before(claim))
        self._wait_log.handed_back(
            claim, WaitCause.SHORTAGE, now=now, due_at=due_at, tried=(waits, tried_at)
        )
        self._settler.hand_back(claim, WaitCause.SHORTAGE, due_at=due_at, now=now)

    def _drop_current(self) -> None:
        """Forget the claim of the current attempt. If its lease is still ours, or ours again, only
        this node's search for lost claims finds it."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.pop(task, None)
        self.has_dropped = True

    async def _outcome_of(self, claim: Claim) -> tuple[Outcome, bool]:
        """The outcome, and whether the endpoint caused it."""
        try:
            return await self._destination.deliver(claim, partial(self._leases.holds, claim)), True
        except (NotSent, LocalShortage):
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            problem = "the attempt was cancelled"
            _log.exception("destination.broken", namespace=claim.namespace, id=claim.id)
        except Exception as error:
            problem = str(error)
            _log.exception("destination.broken", namespace=claim.namespace, id=claim.id)
        # A destination that breaks its contract must not leave the timer executing for ever.
        now = self._clock.now()
        reason = f"internal error: {problem}"
        return Failed(sent_at=now, answered_at=now, error=reason, blames_endpoint=False), False

    def _log_failure(
        self, lane: Lane, claim: Claim, outcome: Failed, settlement: Settlement
    ) -> None:
        fields: dict[str, object] = {
            "namespace": claim.namespace,
            "id": claim.id,
            "endpoint": lane.breaker.endpoint,
            "attempt": claim.attempt,
            "error": outcome.error,
        }
        if settlement.status is TimerStatus.FAILED:
            _log.warning("timer.failed", **fields)
        else:
            # Below the usual level: an absent endpoint makes thousands of these a second.
            _log.debug("timer.retry_planned", due_at=format_instant(settlement.due_at), **fields)


def lateness_of(claim: Claim, now: Instant) -> int:
    """Microseconds by which the attempt is late, as far as its instants tell."""
    return now - max(was_due_at(claim), claim.created_at)


class Lateness:
    """The lateness of the last thousand attempts within the last minute.

    The lateness of a timer counts from the instant its client asked for, or from its creation if
    that was later; of a retry from the instant it was planned for; of a redriven timer from the
    instant it was redriven. So waiting for a busy endpoint counts. An attempt that this process
    could not make is forgotten: a lasting shortage, such as that of an encryption key, would look
    like lateness of everything. Recording is cheap; reading sorts.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque(maxlen=1_000)

    def record(self, late: int, now_seconds: float) -> tuple[float, int]:
        """Record an attempt that is sent `late` microseconds after it was due."""
        recorded = (now_seconds, late)
        self._recent.append(recorded)
        return recorded

    def forget(self, recorded: tuple[float, int]) -> None:
        # A thousand later ones may have pushed it out.
        with suppress(ValueError):
            self._recent.remove(recorded)

    def percentile_ms(self, percent: float, now_seconds: float) -> float | None:
        """None when nothing was sent within the last minute."""
        since = now_seconds - LATELY_SECONDS
        ordered = sorted(late for sent_seconds, late in self._recent if sent_seconds >= since)
        if not ordered:
            return None
        return ordered[int((len(ordered) - 1) * percent / 100)] / MICROSECONDS_PER_MS


def _new_delivery_id() -> str:
    return str(uuid_utils.uuid7())
