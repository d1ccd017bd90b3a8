"""The reference page of log events, written from their descriptions.

`python -m duetime.telemetry.log_events.reference` rewrites it in the working directory.
"""

from pathlib import Path

from duetime.telemetry.log_events.api import API, AUDIT_LOG
from duetime.telemetry.log_events.brokers import BUS, NATS
from duetime.telemetry.log_events.engine import CLUSTER, TIMERS
from duetime.telemetry.log_events.event import LogEvent
from duetime.telemetry.log_events.service import SERVICE, WORKERS
from duetime.telemetry.log_events.stores import SQLITE, STORE

PAGE_PATH = Path("docs/reference/log-events.md")

AREAS = (SERVICE, WORKERS, TIMERS, CLUSTER, STORE, SQLITE, API, AUDIT_LOG, BUS, NATS)
EVENTS = {event.name: event for area in AREAS for event in area.events}

_HEAD = """\
# Log events

`duetime serve` logs one line per event on standard error: JSON, or text on a terminal
(`LOG_FORMAT`). `LOG_LEVEL` is the lowest level that is logged. The names of events and fields are
stable: a release that renames one says so in the changelog.

Every line has `timestamp` (UTC, ISO 8601), `level` and `event`. It may also have:

| field | meaning |
|---|---|
"""

_COMMON_FIELDS = {
    "`request_id`": "The `X-Request-Id` of the request that was being handled.",
    "`trace_id`, `span_id`": "The span that the line belongs to. If the service does not trace the "
    "request, it is the span of the client that sent a `traceparent`. Attempts that are not "
    "sampled have none.",
    "`worker`": "The number of the worker, if there are several.",
    "`exception`": "A traceback, if the table below names it. Text prints it below the line.",
}

_LIBRARIES = """
Warnings of libraries have the words of the library as `event`; those words are not stable.
"""


def page_text() -> str:
    parts = [_HEAD]
    parts += (f"| {names} | {meaning} |\n" for names, meaning in _COMMON_FIELDS.items())
    parts.append(_LIBRARIES)
    for area in AREAS:
        parts.append(
            f"\n## {area.heading}\n\n"
            "| event | level | fields | meaning | what to do |\n|---|---|---|---|---|\n"
        )
        parts.extend(map(_row, area.events))
    return "".join(parts)


def _row(event: LogEvent) -> str:
    fields = ", ".join(f"`{name}`" for name in event.fields)
    return f"| `{event.name}` | {event.level} | {fields} | {event.meaning} | {event.advice} |\n"


def write_page(root: Path) -> None:
    (root / PAGE_PATH).write_text(page_text(), encoding="utf-8")


if __name__ == "__main__":
    write_page(Path.cwd())
