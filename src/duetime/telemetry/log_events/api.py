"""Log events of the HTTP APIs, of keys and of the audit log."""

from duetime.telemetry.log_events.event import REPORT, Area, LogEvent

_ENTRY = (
    "id",
    "at",
    "actor",
    "action",
    "result",
    "key_id",
    "address",
    "namespace",
    "target",
    "details",
)

API = Area(
    "API",
    (
        LogEvent(
            "api.request_failed",
            "error",
            ("method", "path", "exception"),
            "A fault in Duetime: a request was answered with 500.",
            REPORT,
        ),
        LogEvent(
            "api.live_page_failed",
            "error",
            ("page", "exception"),
            "A fault in Duetime: an open page of the Web UI could not be brought up to date. It "
            "says so, and is tried again every second.",
            REPORT,
        ),
        LogEvent(
            "api.unavailable",
            "error",
            ("path", "reason"),
            "A request was answered with 503, or with 500 because a stored value cannot be read. "
            "Refusals because of a full disk are not logged one by one.",
            "Look at the store.",
        ),
        LogEvent(
            "api.store_unreachable",
            "warning",
            ("reason",),
            "A health check got no answer from the store.",
            "Look at the store.",
        ),
        LogEvent(
            "api.bodies_refused",
            "warning",
            ("used_bytes", "limit_bytes"),
            "The bodies of requests under way take the memory of `MAX_BODIES_BYTES`, so one was "
            "refused with 503. Until half of it is free again, further refusals are not logged.",
            "Send smaller batches, or raise `MAX_BODIES_BYTES`.",
        ),
        LogEvent(
            "api.connections_full",
            "warning",
            (
                "max_connections",
                "closed",
                "turned_away",
                "peer",
                "peer_connections",
                "advice",
            ),
            "All places for clients of the API are taken. Since the start, `closed` connections "
            "made room for new ones, and `turned_away` new ones got a 503. `peer` has most of the "
            "places. Logged at most once a minute.",
            "Let clients share connections, or raise the limit of open files.",
        ),
        LogEvent(
            "api.wrong_keys",
            "warning",
            ("refused", "throttled", "address", "address_tries"),
            "Wrong keys of the last minute: `refused` with a 401, and `throttled` with a 429. "
            "`address`, or the IPv6 network, sent most of them. Nothing of the keys is logged. "
            "Logged at most once a minute, and at the end.",
            "Find out who calls from `address`.",
        ),
        LogEvent(
            "api.key_limited",
            "warning",
            ("refused", "keys", "key", "name", "key_refused"),
            "Keys went over their limits in the last minute: `refused` requests of `keys` keys "
            "got a 429, most of them the one with the id `key`. Logged at most once a minute, and "
            "at the end.",
            "Talk to its owner, or raise the limits of the key.",
        ),
    ),
)

AUDIT_LOG = Area(
    "Audit log",
    (
        LogEvent(
            "audit.store_late",
            "error",
            ("reason", "waiting"),
            "The store does not take entries of the [audit log](../how-to/audit-log.md), so "
            "requests do not wait for it; `waiting` entries are kept in memory.",
            "Look at the store.",
        ),
        LogEvent(
            "audit.caught_up",
            "info",
            ("dropped",),
            "The store takes entries again, and has got those that waited; `dropped` since the "
            "start for want of room.",
        ),
        LogEvent(
            "audit.entry_unwritten",
            "error",
            _ENTRY,
            "A request was answered before its entry of the audit log was durable. The line has "
            "the fields of the entry.",
            "Keep the line: it may be the only trace of the request.",
        ),
        LogEvent(
            "audit.entry_refused",
            "error",
            (*_ENTRY, "exception"),
            "A fault in Duetime: an entry could not be written. The line has its fields.",
            REPORT,
        ),
        LogEvent(
            "audit.refusals_left_out",
            "warning",
            _ENTRY,
            "The audit log has one entry for many refused requests; `details` has their number, "
            "and the other fields describe the last one.",
            "Find out who calls from `address`.",
        ),
        LogEvent(
            "audit.backlog_lost",
            "error",
            ("entries",),
            "The service stopped while `entries` waited for the store; each one has a line "
            "`audit.entry_unwritten`.",
            "Keep those lines.",
        ),
        LogEvent(
            "audit.pruned",
            "debug",
            ("entries",),
            "Entries of the audit log were deleted, because their retention is over.",
        ),
    ),
)
