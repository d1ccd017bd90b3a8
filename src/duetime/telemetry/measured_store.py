"""The store with every call measured: its duration, its errors, and the timers that it wrote.

Whatever door a timer comes through, these calls write it, so the numbers hold for all doors.
"""

from collections import Counter as Tally
from collections.abc import Awaitable, Callable, Sequence
from inspect import getmembers, iscoroutinefunction
from itertools import product
from typing import Any, TypeVar, cast

from msgspec import UNSET

from duetime.domain.callback import Callback
from duetime.domain.errors import DuetimeError, StorageFull, StoreUnavailable
from duetime.domain.timer import Timer
from duetime.ports.clock import Clock
from duetime.ports.store import ClaimBatch, ConditionalResult, CreateResult, Existence
from duetime.telemetry.metrics.catalogue import cluster as cluster_metrics
from duetime.telemetry.metrics.catalogue import store as store_metrics
from duetime.telemetry.metrics.catalogue import timers as timer_metrics
from duetime.telemetry.metrics.recording import Counter, Histogram, LabelValues, Recorder

S = TypeVar("S")

_UNMEASURED = ("open", "close")
_PARTS = ("security", "lateness_ledger", "searches", "endpoint_pauses")
"""Attributes of a store that are stores themselves."""
_ESSENTIAL = ("create", "get", "claim_due", "settle")
"""Operations whose errors are shown from the start, as 0: Prometheus sees no increase in the first
sample of a series."""
_REASONS = ("unavailable", "full", "other")


class StoreCalls:
    """The recorders of calls to the store, and of the timers that they write. `namespaces` limits
    the label of that name."""

    def __init__(self, clock: Clock, namespaces: LabelValues) -> None:
        self._clock = clock
        self._namespaces = namespaces
        self._durations = Histogram(store_metrics.CALLS)
        self._errors = Counter(store_metrics.ERRORS)
        for operation, reason in product(_ESSENTIAL, _REASONS):
            self._errors.add(operation, reason, count=0)
        self._create_batch = Histogram(store_metrics.CREATE_BATCH)
        self._settle_batch = Histogram(store_metrics.SETTLE_BATCH)
        self._created = Counter(timer_metrics.CREATED)
        self._replaced = Counter(timer_metrics.REPLACED)
        self._changed = Counter(timer_metrics.CHANGED)
        self._canceled = Counter(timer_metrics.CANCELED)
        self._redriven = Counter(timer_metrics.REDRIVEN)
        self._claimed = Counter(timer_metrics.CLAIMED)
        self._recovered = Counter(cluster_metrics.RECOVERED)
        self._observers: dict[str, Callable[[Sequence[Any], Any], None]] = {
            "create": self._see_created,
            "restore": self._see_restored,
            "settle": self._see_settled,
            "claim_due": self._see_claimed,
            "change_if_pending": self._see_changed,
            "cancel_if_pending": self._see_canceled,
            "remove_if_pending": self._see_canceled,
            "remove_pending": self._see_removed,
            "redrive_if_failed": self._see_redriven,
            "recover": self._see_recovered,
        }

    def recorders(self) -> list[Recorder]:
        return [
            self._durations, self._errors, self._create_batch, self._settle_batch, self._created,
            self._replaced, self._changed, self._canceled, self._redriven, self._claimed,
            self._recovered,
        ]  # fmt: skip

    def measured(self, store: S) -> S:
        """The store, whose calls are recorded here. Everything else is the store's own; but it is
        no instance of the store's class."""
        return cast(S, _MeasuredStore(store, self._timed))

    def _timed(
        self, operation: str, call: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        monotonic, durations = self._clock.monotonic, self._durations
        see = self._observers.get(operation)

        async def timed(*values: Any, **named: Any) -> Any:
            began_seconds = monotonic()
            try:
                result = await call(*values, **named)
            except Exception as error:
                self._see_error(operation, error)
                raise
            finally:
                durations.of(operation).observe(monotonic() - began_seconds)
            if see is not None:
                see(values, result)
            return result

        return timed

    def _see_error(self, operation: str, error: Exception) -> None:
        """Refusals for which the caller is to blame are no errors of the store."""
        if isinstance(error, StorageFull):
            self._errors.add(operation, "full")
        elif isinstance(error, StoreUnavailable):
            self._errors.add(operation, "unavailable")
        elif not isinstance(error, DuetimeError):
            self._errors.add(operation, "other")

    def _see_created(self, values: Sequence[Any], results: Sequence[CreateResult]) -> None:
        self._create_batch.of().observe(len(results))
        self._see_restored(values, results)

    def _see_restored(self, values: Sequence[Any], results: Sequence[CreateResult]) -> None:
        created: dict[tuple[str, type[Callback]], int] = {}
        replaced = []
        new, instead = Existence.CREATED, Existence.REPLACED
        for result in results:
            existence = result.existence
            if existence is new:
                timer = result.timer
                labels = (timer.key.namespace, timer.callback.__class__)
                created[labels] = created.get(labels, 0) + 1
            elif existence is instead:
                replaced.append(result.timer.key.namespace)
        for (namespace, callback), count in created.items():
            label = self._namespaces.of(namespace)
            self._created.add(label, str(callback.__struct_config__.tag), count=count)
        if replaced:
            self._add(self._replaced, replaced)

    def _see_recovered(self, values: Sequence[Any], recovered: Sequence[Any]) -> None:
        self._recovered.add(count=len(recovered))

    def _see_settled(self, values: Sequence[Any], applied: Sequence[bool]) -> None:
        self._settle_batch.of().observe(len(applied))

    def _see_claimed(self, values: Sequence[Any], batch: ClaimBatch) -> None:
        self._add(self._claimed, [claim.namespace for claim in batch.claims])

    def _see_changed(self, values: Sequence[Any], result: ConditionalResult | None) -> None:
        """Attempts that the engine plans anew are no changes of a client."""
        if values[1].due_at is UNSET:
            self._add_if_applied(self._changed, result)

    def _see_canceled(self, values: Sequence[Any], result: ConditionalResult | None) -> None:
        self._add_if_applied(self._canceled, result)

    def _see_removed(self, values: Sequence[Any], removed: int) -> None:
        if removed:
            self._canceled.add(self._namespaces.of(values[0]), count=removed)

    def _see_redriven(self, values: Sequence[Any], timers: Sequence[Timer | None]) -> None:
        self._add(self._redriven, [each.key.namespace for each in timers if each is not None])

    def _add_if_applied(self, counter: Counter, result: ConditionalResult | None) -> None:
        if result is not None and result.applied:
            counter.add(self._namespaces.of(result.timer.key.namespace))

    def _add(self, counter: Counter, namespaces: Sequence[str]) -> None:
        for namespace, count in Tally(namespaces).items():
            counter.add(self._namespaces.of(namespace), count=count)


class _MeasuredStore:
    """A measured function for each operation of a store; all else is the store's own."""

    def __init__(
        self,
        store: Any,
        timed: Callable[[str, Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]],
    ) -> None:
        self._store = store
        for operation, _ in getmembers(type(store), iscoroutinefunction):
            if not operation.startswith("_") and operation not in _UNMEASURED:
                setattr(self, operation, timed(operation, getattr(store, operation)))
        for part in _PARTS:
            if hasattr(store, part):
                setattr(self, part, _MeasuredStore(getattr(store, part), timed))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
