"""Metrics of the API and of the process."""

from duetime.telemetry.metrics.catalogue import buckets
from duetime.telemetry.metrics.metric import counter, gauge, histogram

REQUESTS = counter(
    "duetime_http_requests_total",
    "Requests that were answered, by operation (as in the OpenAPI document; none for unknown paths "
    "and for requests that the server itself refused) and status.",
    "operation", "status",
)  # fmt: skip
REQUEST_DURATION = histogram(
    "duetime_http_request_duration_seconds",
    "Time from the head of a request to its answer, by operation.",
    buckets.REQUEST,
    "operation",
)
CONNECTIONS = gauge("duetime_http_connections", "Open connections to the API.")
CONNECTIONS_TURNED_AWAY = counter(
    "duetime_http_connections_turned_away_total", "Connections for which there was no place."
)
CONNECTIONS_CLOSED = counter(
    "duetime_http_connections_closed_total", "Connections that were closed in favour of others."
)
REQUESTS_REFUSED = counter(
    "duetime_requests_refused_total",
    "Requests that were refused for their key, by reason: unauthorized, forbidden or throttled.",
    "reason",
)
AUDIT_WAITING = gauge(
    "duetime_audit_entries_waiting", "Entries of the audit log that are not written yet."
)
AUDIT_DROPPED = counter(
    "duetime_audit_entries_dropped_total", "Entries of the audit log that were lost."
)
LOOP_LAG = histogram(
    "duetime_event_loop_lag_seconds",
    "Delay of a timer that is set twice a second. A millisecond is normal; a pause of the process "
    "is one delay.",
    buckets.LOOP_LAG,
)
WORKERS = gauge("duetime_workers", "Workers of this service (WORKERS). Has no label `worker`.")
WORKERS_ANSWERING = gauge(
    "duetime_workers_answering",
    "Workers whose numbers are in this scrape; others did not answer within a second. Has no label "
    "`worker`.",
)
BUILD = gauge(
    "duetime_build_info",
    "1, with the release, the Python release and the kind of store.",
    "version", "python", "store",
)  # fmt: skip
CPU = counter("process_cpu_seconds_total", "CPU time of the process, user and system.")
RESIDENT = gauge("process_resident_memory_bytes", "Resident memory of the process.")
OPEN_FILES = gauge("process_open_fds", "Open file descriptors of the process.")
MAX_FILES = gauge("process_max_fds", "File descriptors that the process may open.")
STARTED = gauge("process_start_time_seconds", "Instant at which the process started.")

PROCESS_METRICS = (
    REQUESTS, REQUEST_DURATION, CONNECTIONS, CONNECTIONS_TURNED_AWAY, CONNECTIONS_CLOSED,
    REQUESTS_REFUSED, AUDIT_WAITING, AUDIT_DROPPED, LOOP_LAG, WORKERS, WORKERS_ANSWERING, BUILD,
    CPU, RESIDENT, OPEN_FILES, MAX_FILES, STARTED,
)  # fmt: skip
