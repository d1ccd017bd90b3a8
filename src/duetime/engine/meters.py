"""The numbers that the engine records about timers and attempts."""

from collections.abc import Iterator, Sequence

from duetime.domain.callback import Callback
from duetime.domain.instants import Instant
from duetime.domain.lateness.recent_slots import SlotFigures, SlotRecorder
from duetime.domain.outcome import Completed, Failed, Interrupted, Outcome, Rescheduled
from duetime.domain.timer import Claim, TimerStatus
from duetime.engine.objective_counts import ObjectiveCounts
from duetime.engine.observing.endpoint_figures import EndpointCounts
from duetime.ports.namespaces.view import NamespaceView, NoNamespaces
from duetime.telemetry.current_work import CURRENT_WORK, sampled_trace_id
from duetime.telemetry.metrics.catalogue import engine, objective, timers
from duetime.telemetry.metrics.recording import (
    Counter,
    Exemplar,
    Gauge,
    Histogram,
    LabelValues,
    Recorder,
    Samples,
    Series,
)

MAX_NAMESPACES = 1_000
"""Namespaces that are told apart, unless the settings say otherwise."""

GATHERED_ATTEMPTS = 64
"""Attempts that are recorded at once: enough for the cache, and over within a tenth of a
millisecond."""

_SECONDS = 1e-6
"""Seconds in a microsecond."""

_OUTCOMES = (Completed, Rescheduled, Failed, Interrupted)
_COMPLETED, _FAILED = TimerStatus.COMPLETED, TimerStatus.FAILED


def type_of(callback: type[Callback]) -> str:
    """The type of a callback as its label: http, nats or bus."""
    return str(callback.__struct_config__.tag)


class Firings:
    """The attempts of one namespace with one type of callback."""

    __slots__ = ("completed", "duration", "failed", "lateness", "outcomes")

    def __init__(self, lateness: Series, duration: Series) -> None:
        self.lateness = lateness
        self.duration = duration
        # By class: to look up a word of an enumeration takes five times as long.
        self.outcomes: dict[type[Outcome], int] = dict.fromkeys(_OUTCOMES, 0)
        self.completed = 0
        self.failed = 0


_Made = tuple[str, type[Callback], str, Outcome, int, TimerStatus, str | None]
"""An attempt: its namespace, callback, endpoint, outcome, lateness and status, and the id of its
trace if that is sampled. A plain tuple: an instance of a class would take longer to make than the
rest."""


class EngineMeters:
    """Attempts are gathered, and recorded many at a time: between the sockets and the store, the
    code and the data for one alone are hardly ever in the processor's cache.

    `endpoints` is the number of endpoints that are told apart; usually none is.
    """

    def __init__(
        self,
        namespaces: LabelValues | None = None,
        endpoints: int = 0,
        view: NamespaceView | None = None,
    ) -> None:
        self._namespaces = namespaces or LabelValues(MAX_NAMESPACES)
        self._firings: dict[tuple[str, type[Callback]], Firings] = {}
        self._labelled: dict[tuple[str, str], Firings] = {}
        self._gathered: list[_Made] = []
        self._slots = SlotRecorder()
        self._lateness = Histogram(timers.LATENESS, self.record_gathered)
        self._duration = Histogram(timers.ATTEMPT_DURATION, self.record_gathered)
        self._endpoint_names = LabelValues(endpoints) if endpoints else None
        self._endpoint_attempts = Counter(engine.ENDPOINT_ATTEMPTS)
        self._view = view = view or NoNamespaces()
        self.objectives = ObjectiveCounts(view, self._namespaces)
        self.endpoint_counts = EndpointCounts()
        self.handed_back = Counter(engine.HANDED_BACK)
        self.refused_outcomes = Counter(engine.REFUSED_OUTCOMES)
        self._read_duration = Histogram(engine.READ_DURATION)
        self.read_duration = self._read_duration.of()
        self.read_at_seconds = 0.0
        """Instant of the last successful read of due timers, in seconds since 1970."""

    def attempt_made(
        self, claim: Claim, endpoint: str, outcome: Outcome, late: int, status: TimerStatus
    ) -> None:
        """Record an attempt that was sent `late` microseconds after it was due, and the status that
        it leaves the timer in."""
        namespace = claim.namespace
        trace_id = None if CURRENT_WORK.get() is None else sampled_trace_id()
        gathered = self._gathered
        gathered.append(
            (namespace, type(claim.callback), endpoint, outcome, late, status, trace_id)
        )
        if namespace in self._view.with_objective:
            self.objectives.attempt_made(namespace, late)
        if len(gathered) >= GATHERED_ATTEMPTS:
            self.record_gathered()

    def record_gathered(self) -> None:
        """Called before anything is read, by the event loop's thread like everything here."""
        gathered, self._gathered = self._gathered, []
        record_slot = self._slots.record
        observe_endpoint = self.endpoint_counts.observe
        for namespace, callback, endpoint, outcome, late, status, trace_id in gathered:
            firings = self._firings.get((namespace, callback))
            if firings is None:
                firings = self._new_firings(namespace, callback)
            # A wall clock that is set back must not make a sum shrink.
            took = outcome.answered_at - outcome.sent_at
            lateness_seconds = late * _SECONDS if late > 0 else 0.0
            duration_seconds = took * _SECONDS if took > 0 else 0.0
            if type(outcome) is not Interrupted:
                observe_endpoint(endpoint, outcome, took)
            firings.outcomes[type(outcome)] += 1
            firings.lateness.observe(lateness_seconds)
            firings.duration.observe(duration_seconds)
            is_completed = status is _COMPLETED
            record_slot(outcome.answered_at, late, completed=is_completed)
            if is_completed:
                firings.completed += 1
            elif status is _FAILED:
                firings.failed += 1
            if trace_id is not None:
                at_seconds = outcome.answered_at * _SECONDS
                firings.lateness.exemplify(Exemplar(trace_id, lateness_seconds, at_seconds))
                firings.duration.exemplify(Exemplar(trace_id, duration_seconds, at_seconds))
            if self._endpoint_names is not None:
                self._endpoint_attempts.add(self._endpoint_names.of(endpoint), outcome.kind.value)

    def endpoint_label(self, endpoint: str) -> str | None:
        """None if the endpoint is not told apart from others."""
        if self._endpoint_names is None:
            return None
        label = self._endpoint_names.of(endpoint)
        return None if label == LabelValues.OTHER else label

    def attempts(self) -> int:
        self.record_gathered()
        return sum(sum(each.outcomes.values()) for each in self._labelled.values())

    def last_slots(self, now: Instant) -> tuple[SlotFigures, ...]:
        """The figures of the last slots that are over."""
        self.record_gathered()
        return self._slots.last_slots(now)

    def recorders(self) -> Sequence[Recorder]:
        return (
            Gauge(timers.ATTEMPTS, self._attempts),
            Gauge(timers.FINISHED, self._finished),
            Gauge(objective.COUNTED, self._counted),
            self._lateness,
            self._duration,
            Gauge(engine.ENDPOINT_ATTEMPTS, self._attempts_by_endpoint),
            self.handed_back,
            self.refused_outcomes,
            self._read_duration,
        )

    def _attempts_by_endpoint(self) -> Samples:
        self.record_gathered()
        return self._endpoint_attempts.samples()

    def _attempts(self) -> Samples:
        self.record_gathered()
        for labels, firings in list(self._labelled.items()):
            for outcome, count in firings.outcomes.items():
                yield (*labels, outcome.kind.value), count

    def _finished(self) -> Iterator[tuple[tuple[str, ...], float]]:
        self.record_gathered()
        for labels, firings in list(self._labelled.items()):
            yield (*labels, TimerStatus.COMPLETED.label), firings.completed
            yield (*labels, TimerStatus.FAILED.label), firings.failed

    def _counted(self) -> Samples:
        for name, count in list(self.objectives.since_start.items()):
            yield (name, "yes"), count.in_time
            yield (name, "no"), count.late

    def _new_firings(self, namespace: str, callback: type[Callback]) -> Firings:
        labels = (self._namespaces.of(namespace), type_of(callback))
        firings = self._labelled.get(labels)
        if firings is None:
            firings = self._labelled[labels] = Firings(
                self._lateness.of(*labels), self._duration.of(*labels)
            )
        # Names without end lead to the same labels, but must not be remembered.
        if labels[0] == namespace:
            self._firings[namespace, callback] = firings
        return firings
