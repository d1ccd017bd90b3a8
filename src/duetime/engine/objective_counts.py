"""Counts the attempts of namespaces with a lateness objective."""

from collections.abc import Mapping

from duetime.domain.lateness.objective import InTimeOrLate
from duetime.ports.namespaces.view import NamespaceView


class ObjectiveCounts:
    """`since_start` never shrinks; `unwritten` are the counts that are to be kept for good."""

    def __init__(self, namespaces: NamespaceView) -> None:
        self._namespaces = namespaces
        self._since_start: dict[str, InTimeOrLate] = {}
        self._unwritten: dict[str, InTimeOrLate] = {}

    def attempt_made(self, name: str, late: int) -> None:
        """Count an attempt that was sent `late` microseconds after it was due."""
        namespace = self._namespaces.known(name)
        if namespace is None or (objective := namespace.options.slo) is None:
            return
        is_late = late > objective.within_microseconds
        for counts in (self._since_start, self._unwritten):
            count = counts.get(name)
            if count is None:
                count = counts[name] = InTimeOrLate()
            if is_late:
                count.late += 1
            else:
                count.in_time += 1

    @property
    def since_start(self) -> Mapping[str, InTimeOrLate]:
        return self._since_start

    def take_unwritten(self) -> Mapping[str, InTimeOrLate]:
        taken, self._unwritten = self._unwritten, {}
        return taken

    def put_back(self, counts: Mapping[str, InTimeOrLate]) -> None:
        """Keep counts that could not be written."""
        for name, count in counts.items():
            kept = self._unwritten.setdefault(name, InTimeOrLate())
            kept.in_time += count.in_time
            kept.late += count.late
