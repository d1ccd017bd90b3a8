"""All recorders of a process, and what they show."""

from collections.abc import Iterable, Iterator, Mapping

import structlog

from duetime.telemetry.metrics.catalogue.all_metrics import ALL_METRICS
from duetime.telemetry.metrics.exposition import Format, Renderer, exposition
from duetime.telemetry.metrics.recording import Recorder

_log = structlog.get_logger()


class Registry:
    """The recorders of one process. `constant` labels are on every series."""

    def __init__(self, constant: Mapping[str, str] | None = None) -> None:
        self._recorders: dict[str, Recorder] = {}
        self._renderer = Renderer(constant)
        self._unreadable: set[str] = set()

    def add(self, recorders: Iterable[Recorder]) -> None:
        """Show these recorders, too. Each metric of the catalogue has one recorder at most."""
        for recorder in recorders:
            name = recorder.metric.name
            assert recorder.metric in ALL_METRICS, f"{name} is not in the catalogue"
            assert name not in self._recorders, f"{name} has two recorders"
            self._recorders[name] = recorder

    def each(self, form: Format) -> Iterator[tuple[str, str]]:
        """The name and the lines of each metric of this process, one after the other. Others may
        run in between."""
        for name, recorder in list(self._recorders.items()):
            yield name, self._lines(recorder, form)

    def samples(self, form: Format) -> dict[str, str]:
        """The lines of each metric of this process, by name."""
        return dict(self.each(form))

    def _lines(self, recorder: Recorder, form: Format) -> str:
        """The lines of a metric; none if it cannot be read, which must not hide the others."""
        try:
            return self._renderer.samples(recorder, form)
        except Exception:
            if recorder.metric.name not in self._unreadable:
                self._unreadable.add(recorder.metric.name)
                _log.exception("metrics.unreadable", metric=recorder.metric.name)
            return ""

    def render(self, form: Format, others: Iterable[Mapping[str, str]] = ()) -> str:
        """All metrics, with the samples of other processes."""
        return exposition(ALL_METRICS, [self.samples(form), *others], form)
