"""Counts the attempts of namespaces with a lateness objective."""

from collections.abc import Iterable, Mapping

from duetime.domain.lateness.objective import InTimeOrLate
from duetime.ports.namespaces.view import NamespaceView
from duetime.telemetry.metrics.recording import LabelValues


class ObjectiveCounts:
    """`since_start` has the counts by label, and is as large as labels allow; `unwritten` are the
    counts that are to be kept for good."""

    def __init__(self, namespaces: NamespaceView, labels: LabelValues) -> None:
        self._namespaces = namespaces
        self._labels = labels
        self._since_start: dict[str, InTimeOrLate] = {}
        self._unwritten: dict[str, InTimeOrLate] = {}

    def attempt_made(self, name: str, late: int) -> None:
        """Count an attempt that was sent `late` microseconds after it was due."""
        namespace = self._namespaces.known(name)
        if namespace is None or (objective := namespace.options.slo) is None:
            return
        shown = self._since_start.get(name)
        if shown is None:
            shown = self._since_start.setdefault(self._labels.of(name), InTimeOrLate())
        unwritten = self._unwritten.get(name)
        if unwritten is None:
            unwritten = self._unwritten[name] = InTimeOrLate()
        if late > objective.within_microseconds:
            shown.late += 1
            unwritten.late += 1
        else:
            shown.in_time += 1
            unwritten.in_time += 1

    def begin(self, names: Iterable[str]) -> None:
        """Count from 0 for namespaces with an objective: a counter that begins with its first
        attempts shows no increase by them."""
        for name in names:
            self._since_start.setdefault(self._labels.of(name), InTimeOrLate())

    @property
    def since_start(self) -> Mapping[str, InTimeOrLate]:
        return self._since_start

    def take_unwritten(self) -> Mapping[str, InTimeOrLate]:
        """The counts since the last call. Namespaces that are gone are forgotten here."""
        for name in [each for each in self._since_start if each != LabelValues.OTHER]:
            if self._namespaces.known(name) is None:
                del self._since_start[name]
        taken, self._unwritten = self._unwritten, {}
        return {
            name: count
            for name, count in taken.items()
            if (namespace := self._namespaces.known(name)) and not namespace.options.deleting
        }

    def put_back(self, counts: Mapping[str, InTimeOrLate]) -> None:
        """Keep counts that could not be written."""
        for name, count in counts.items():
            self._unwritten.setdefault(name, InTimeOrLate()).add(count)
