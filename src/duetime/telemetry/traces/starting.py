"""Traces from the environment: on if an exporter is configured, else nothing is imported."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from duetime.ports.clock import Clock
from duetime.telemetry.traces.configuration import (
    EXTRA,
    WrongTracing,
    export_queue,
    exporter_names,
    secrets_of,
)
from duetime.telemetry.traces.library_log import LibraryLog
from duetime.telemetry.traces.sampling import sampling_of

if TYPE_CHECKING:
    from duetime.telemetry.traces.spans import Spans


def spans_of(environment: Mapping[str, str], instance: str, clock: Clock) -> "Spans | None":
    """The spans of this process, `instance`; None if traces are off. Raises `WrongTracing`."""
    names = exporter_names(environment)
    if not names:
        return None
    queue, sampling = export_queue(environment), sampling_of(environment)
    log = LibraryLog(clock, secrets_of(environment))
    log.install()
    try:
        from duetime.telemetry.traces.exporting import Exporting
        from duetime.telemetry.traces.spans import Spans

        return Spans(Exporting(names, queue, instance, log), sampling, clock)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        raise WrongTracing(
            f"the OTEL_ variables configure traces, which need an extra: pip install '{EXTRA}'"
        ) from None
    except ValueError as error:
        # The SDK reads variables while it is imported, too. Its words name the variable.
        reason = log.cleaned(str(error))
        raise WrongTracing(f"an OTEL_ variable is wrong: {reason}") from None
