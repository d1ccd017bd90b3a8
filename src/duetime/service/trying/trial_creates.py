"""Creates that are checked and not written, for forms that say at once what is wrong."""

from typing import NamedTuple

from duetime.domain.callback import Callback
from duetime.domain.errors import InvalidInput, TimerDiffers
from duetime.domain.instants import Delay, Instant
from duetime.domain.timer import Timer
from duetime.ports.clock import Clock
from duetime.ports.destination import Destination
from duetime.ports.store import TimerStore
from duetime.service.create_comparison import differing_fields
from duetime.service.create_requests import CreateRequests, NewTimer
from duetime.service.namespaces import Namespaces
from duetime.service.timer_service import new_uuid7
from duetime.service.validation import TimerChecks, TimerRules


class Trial(NamedTuple):
    """The timer as it would be. If it `exists` with the same content, creating it changes
    nothing."""

    timer: Timer
    exists: bool = False


class TrialCreates:
    """Checks as `TimerService.create` does, with the same rules, for timers without an idempotency
    key. A timer that passes may still be refused when it is created: the namespace may be full, or
    another timer may have taken its id."""

    def __init__(
        self,
        store: TimerStore,
        clock: Clock,
        destination: Destination,
        namespaces: Namespaces,
        rules: TimerRules,
    ) -> None:
        self._store = store
        self._clock = clock
        self._destination = destination
        self._namespaces = namespaces
        self._rules = rules
        self._checks = TimerChecks(destination, rules)
        self._requests = CreateRequests(namespaces, self._checks, rules, new_uuid7)

    async def check(self, new: NewTimer) -> Trial:
        """Raises as `TimerService.create` does, except for the instant: see `check_instant`."""
        await self._namespaces.named(new.namespace)
        requests = self._requests.in_namespace(new.namespace)
        timer = requests.request_for(new, self._clock.now()).timer
        existing = None if new.id is None else await self._store.get(timer.key)
        if existing is None:
            return Trial(timer)
        if fields := differing_fields(timer, existing, self._rules.callback_timeout_ms):
            raise TimerDiffers(fields)
        return Trial(existing, exists=True)

    @property
    def default_timeout_ms(self) -> int:
        """The timeout of callbacks that have none of their own."""
        return self._rules.callback_timeout_ms

    def check_instant(self, execute_at: Instant | Delay) -> None:
        """Raises `InvalidInput`."""
        self._checks.check_instant(execute_at, self._clock.now())

    def why_unavailable(self, callback: Callback) -> str | None:
        """Why callbacks of this type cannot be delivered here; None if they can be."""
        try:
            self._destination.check(callback)
        except InvalidInput as error:
            return error.problem if error.field == "callback.type" else None
        return None
