"""Log events of the engine: attempts, endpoints, ownership of shards and clocks."""

from duetime.telemetry.log_events.event import REPORT, Area, LogEvent

TIMERS = Area(
    "Timers and endpoints",
    (
        LogEvent(
            "timer.failed",
            "warning",
            ("namespace", "id", "endpoint", "attempt", "error"),
            "A timer failed for good.",
            "Correct the endpoint, then [redrive](../how-to/redrive-failed-timers.md) the timer.",
        ),
        LogEvent(
            "timer.retry_planned",
            "debug",
            ("namespace", "id", "endpoint", "attempt", "error", "due_at"),
            "An attempt failed, and the next one is made at `due_at`.",
        ),
        LogEvent(
            "timer.settlement_refused",
            "warning",
            ("namespace", "id"),
            "An outcome came too late: the timer already had a new owner, and may be repeated.",
            "If it happens often, look for pauses of this node (`leases.resumed`, `shards.lost`).",
        ),
        LogEvent(
            "endpoint.opened",
            "warning",
            ("endpoint", "failures", "error"),
            "An endpoint keeps failing or hanging, `failures` times in a row, so only a few "
            "attempts at a time go there.",
            "Look at the endpoint. Its timers are tried again as their retry policies say.",
        ),
        LogEvent(
            "endpoint.closed",
            "info",
            ("endpoint", "why", "open_seconds"),
            "An endpoint works again, or has not been called for long (`why`).",
        ),
        LogEvent(
            "endpoint.paused",
            "info",
            ("endpoint", "paused_by"),
            "Nothing is sent to an endpoint from now on, because an operator paused it.",
            "Resume it with `duetime endpoints resume`, when it may be called again.",
        ),
        LogEvent(
            "endpoint.resumed",
            "info",
            ("endpoint",),
            "An operator resumed an endpoint. Timers that waited for it are sent now.",
        ),
        LogEvent(
            "engine.short",
            "warning",
            ("resource", "attempts_postponed", "advice"),
            "This process lacks a `resource` (file descriptors, local ports, network buffers, "
            "memory, an encryption key, a readable webhook secret, the callback proxy), so "
            "`attempts_postponed` attempts were not made. Their timers wait in the store and are "
            "tried again within seconds; no attempt counts, and no endpoint is blamed. Logged for "
            "each resource when its shortage begins, then every minute.",
            "Do what `advice` says.",
        ),
        LogEvent(
            "engine.deliveries_abandoned",
            "warning",
            ("count",),
            "At the stop, callbacks did not finish within the grace period. They are repeated "
            "after the next start, or by another node.",
            "Raise `SHUTDOWN_GRACE_SECONDS` if endpoints need longer.",
        ),
        LogEvent(
            "engine.stopped_without_store",
            "error",
            ("error",),
            "At the stop, outcomes could not be written; those timers are repeated.",
            "Look at the store.",
        ),
        LogEvent(
            "engine.stopped_with_unsettled",
            "error",
            ("exception",),
            "A fault in Duetime at the stop; timers whose outcomes were not written are repeated.",
            REPORT,
        ),
        LogEvent(
            "attempt.broken",
            "error",
            ("namespace", "id", "exception"),
            "A fault in Duetime; the timer is recovered.",
            REPORT,
        ),
        LogEvent(
            "attempt.waits_broken",
            "error",
            ("namespace", "id", "exception"),
            "A fault in Duetime: the waits of the attempt could not be told. It is made all the "
            "same.",
            REPORT,
        ),
        LogEvent(
            "destination.broken",
            "error",
            ("namespace", "id", "exception"),
            "A fault in Duetime: the attempt could not be made, and counts as failed.",
            REPORT,
        ),
        LogEvent(
            "timers.recovered",
            "info",
            ("count",),
            "Timers that were under way when their last owner ended are repeated.",
        ),
        LogEvent(
            "timers.replanned",
            "info",
            ("count", "why"),
            "Retries that were planned by a clock that was ahead have been moved back.",
        ),
        LogEvent(
            "timers.pruned",
            "debug",
            ("namespace", "count"),
            "Finished timers were deleted, because their retention is over.",
        ),
        LogEvent(
            "operation.ended",
            "info",
            ("operation", "action", "namespace", "status", "changed", "skipped"),
            "A [bulk operation](../how-to/change-many-timers.md) ended.",
        ),
        LogEvent(
            "operation.failed",
            "error",
            ("operation", "exception"),
            "A fault in Duetime: a bulk operation met an internal error and ends.",
            REPORT,
        ),
    ),
)

CLUSTER = Area(
    "Nodes and shards",
    (
        LogEvent(
            "shards.taken",
            "info",
            ("node", "shards", "timers_recovered"),
            "This node now owns `shards`. `timers_recovered` were under way when their last owner "
            "ended, and are repeated.",
        ),
        LogEvent(
            "shards.released",
            "info",
            ("node", "shards", "unfinished"),
            "This node no longer owns `shards`, and finishes the attempts under way there.",
        ),
        LogEvent(
            "shards.lost",
            "warning",
            ("node", "shards"),
            "Other nodes have taken over because this node was silent for longer than its lease.",
            "Look for pauses of the process or the network, or raise `LEASE_SECONDS`.",
        ),
        LogEvent(
            "leases.resumed",
            "warning",
            ("node", "shards"),
            "This node was silent for a while, but no other node has taken over.",
            "Look for pauses of the process, the network or the database.",
        ),
        LogEvent(
            "node.forgotten",
            "warning",
            ("node",),
            "The other nodes have removed this one because it was silent for too long. It joins "
            "again.",
            "Look for pauses of the process or the network.",
        ),
        LogEvent(
            "node.dead",
            "warning",
            ("node", "beat"),
            "A member was silent for too long and was removed; others take its shards.",
            "Look at that node.",
        ),
        LogEvent(
            "signal.lost",
            "debug",
            (),
            "A leaving node could not notify the others. They find its shards with their next "
            "beat.",
        ),
        LogEvent(
            "signals.lost",
            "warning",
            ("error",),
            "The connection by which nodes notify each other of new timers broke, and is made "
            "again. Meanwhile they find new timers by polling.",
            "If it happens often, look at the network to the database.",
        ),
        LogEvent(
            "signals.unavailable",
            "warning",
            ("loop", "error"),
            "Nodes cannot notify each other of new timers for now; they find them by polling. "
            "Logged once, then every 30 s.",
            "Look at the database; a pooler in between has to allow LISTEN.",
        ),
        LogEvent(
            "signals.available",
            "info",
            ("loop", "away_seconds"),
            "Nodes can notify each other again.",
        ),
        LogEvent(
            "clock.skewed",
            "error",
            ("store_ahead_ms", "limit_ms", "advice"),
            "The clocks of this machine and of the database differ by more than "
            "`CLOCK_SKEW_LIMIT_MS`.",
            "Let both machines keep their time by NTP.",
        ),
        LogEvent(
            "clock.jumped",
            "warning",
            ("ahead_seconds", "believed_in_seconds", "advice"),
            "This machine's clock jumped ahead by `ahead_seconds`, or is that far ahead, at the "
            "start, of the last time that a node believed. Finished timers are not pruned until "
            "it is set back, or has kept its time for `believed_in_seconds`.",
            "Check the clock, and set it back if it is wrong.",
        ),
        LogEvent(
            "clock.unconfirmed",
            "info",
            ("believed_in_seconds", "advice"),
            "The first start on a store that an earlier release wrote. Finished timers are not "
            "pruned until the clock has kept its time for `believed_in_seconds`.",
        ),
        LogEvent("clock.trusted", "info", ("why",), "Finished timers are pruned again."),
    ),
)
