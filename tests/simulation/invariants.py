"""The promises of Duetime, checked at every step of a simulation."""

from duetime.domain.instants import Instant
from duetime.domain.outcome import Completed, Failed, Outcome, Rescheduled
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, Timer, TimerStatus


class Broken(AssertionError):
    """A promise was broken."""


class Owner:
    """One process, as far as the promises depend on it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.gone = False
        """It was killed or forgotten, or stopped without being able to record everything."""


class Version:
    """A client's request: the create (0) or a change (1, 2, ...)."""

    def __init__(self, number: int, execute_at: Instant, policy: RetryPolicy | None) -> None:
        self.number = number
        self.execute_at = execute_at
        self.policy = policy


class Sending:
    """One attempt, as the receiver sees it."""

    def __init__(self, claim: Claim, version: Version, owner: Owner) -> None:
        self.claim = claim
        self.version = version
        self.owner = owner
        self.open = True
        self.outcome: Outcome | None = None


class TimerHistory:
    """Everything that clients and receivers know of one timer, and the checks that follow."""

    def __init__(self, timer_id: str, first: Version) -> None:
        self.id = timer_id
        self.possible = {first.number: first}
        """The versions that may be sent from now on."""
        self.accepted = False
        self.cancel_asked = False
        self.busy = True
        """A client's request is under way."""
        self.recovered = False
        """Since the last attempt began, an owner left it executing; it may not have been sent."""
        self.sendings: list[Sending] = []

    def started(self, claim: Claim, version_number: int, now: Instant, owner: Owner) -> Sending:
        version = self.possible.get(version_number)
        if version is None:
            raise self._broken(f"version {version_number} was sent after it was taken back")
        # A first attempt may have been deferred by a clock that was ahead; that is no plan of the
        # client's, and does not have to be kept once the clock is set back.
        if now < claim.due_at and (claim.attempt > 1 or claim.failures):
            raise self._broken(f"sent {claim.due_at - now} us before it was due")
        if now < claim.execute_at:
            raise self._broken(f"sent {claim.execute_at - now} us before execute_at")
        before = self.sendings[-1] if self.sendings else None
        if before is None or before.claim.delivery_id != claim.delivery_id:
            self._check_new_firing(claim, version, before)
        else:
            self._check_repeat(claim, version, before)
        if any(sending.open and not sending.owner.gone for sending in self.sendings):
            raise self._broken("two attempts run at the same time")
        sending = Sending(claim, version, owner)
        self.sendings.append(sending)
        self.recovered = False
        return sending

    def check_lateness(self, claim: Claim, now: Instant, longest_ms: float) -> None:
        late_ms = (now - (claim.due_at if claim.failures else claim.execute_at)) / 1_000
        if late_ms > longest_ms:
            raise self._broken(f"{late_ms} ms late")

    def _check_new_firing(self, claim: Claim, version: Version, before: Sending | None) -> None:
        if any(old.claim.delivery_id == claim.delivery_id for old in self.sendings):
            raise self._broken("an old delivery id came back")
        same_version = before is not None and before.version is version
        if same_version and before is not None and not isinstance(before.outcome, Rescheduled):
            raise self._broken("the delivery id changed without a change or a reschedule")
        if not same_version and claim.execute_at != version.execute_at:
            raise self._broken("the first attempt is for another instant than asked for")
        if claim.attempt != 1 and not self._an_owner_failed_since(before):
            raise self._broken(f"a new firing began with attempt {claim.attempt}")

    def _check_repeat(self, claim: Claim, version: Version, before: Sending) -> None:
        if before.version is not version:
            raise self._broken("one delivery id was used for two versions")
        if claim.attempt <= before.claim.attempt:
            raise self._broken("the attempt number did not rise")
        if before.owner.gone or self.recovered:
            return
        if claim.attempt != before.claim.attempt + 1:
            raise self._broken("attempt numbers skipped though no owner died")
        if not isinstance(before.outcome, Failed):
            raise self._broken(f"sent again after {before.outcome}, though no owner died")

    def _an_owner_failed_since(self, before: Sending | None) -> bool:
        return self.recovered or (before is not None and before.owner.gone)

    def check_end(self, timer: Timer | None) -> None:
        """When everything has come to rest: is the timer where it has to be?"""
        if timer is None:
            if self.accepted:
                raise self._broken("lost: the store does not know it")
            if self.sendings:
                raise self._broken("sent, but the store does not know it")
            return
        outcomes = [sending.outcome for sending in self.sendings]
        match timer.status:
            case TimerStatus.PENDING | TimerStatus.EXECUTING:
                raise self._broken(f"never finished: {timer.status.label}, due {timer.due_at}")
            case TimerStatus.CANCELED:
                if not self.cancel_asked:
                    raise self._broken("canceled though nobody asked for it")
            case TimerStatus.COMPLETED:
                if not isinstance(outcomes[-1] if outcomes else None, Completed):
                    raise self._broken("completed without an answer that says so")
            case TimerStatus.FAILED:
                self._check_failed(timer)

    def _check_failed(self, timer: Timer) -> None:
        last = self.sendings[-1] if self.sendings else None
        if last is None or not isinstance(last.outcome, Failed):
            raise self._broken("failed without a failed attempt")
        policy = last.version.policy
        failures = sum(
            isinstance(sending.outcome, Failed)
            for sending in self.sendings
            if sending.claim.delivery_id == last.claim.delivery_id
        )
        if policy is None or failures > policy.max_retries:
            return
        # Fewer retries than allowed: only because time ran out.
        next_at = last.outcome.answered_at + policy.interval_ms(timer.failures) * 1_200
        first_claimed_at = min(attempt.claimed_at for attempt in timer.attempts)
        if next_at < first_claimed_at + policy.max_duration_ms * 1_000:
            raise self._broken(f"failed after {failures} of {policy.max_retries + 1} attempts")

    def _broken(self, problem: str) -> Broken:
        lines = [f"timer {self.id}: {problem}"]
        lines += [
            f"  process {sending.owner.number}{' (gone)' if sending.owner.gone else ''} sent "
            f"version {sending.version.number} attempt {sending.claim.attempt} "
            f"due {sending.claim.due_at} delivery {sending.claim.delivery_id[-6:]}: "
            f"{type(sending.outcome).__name__}{' (open)' if sending.open else ''}"
            for sending in self.sendings
        ]
        return Broken("\n".join(lines))
