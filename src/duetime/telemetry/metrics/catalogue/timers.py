"""Metrics of timers and of the attempts to deliver them."""

from duetime.telemetry.metrics.catalogue import buckets
from duetime.telemetry.metrics.metric import counter, gauge, histogram

CREATED = counter(
    "duetime_timers_created_total",
    "Timers that were created or imported here, by the type of their callback: http, nats or bus.",
    "namespace", "type",
)  # fmt: skip
REPLACED = counter(
    "duetime_timers_replaced_total",
    "Creates that replaced an existing timer.",
    "namespace",
)  # fmt: skip
CHANGED = counter(
    "duetime_timers_changed_total",
    "Changes of pending timers by clients, whatever part of the timer they changed.",
    "namespace",
)  # fmt: skip
CANCELED = counter(
    "duetime_timers_canceled_total", "Timers that were canceled or deleted.", "namespace"
)
REDRIVEN = counter(
    "duetime_timers_redriven_total", "Failed timers that were made pending again.", "namespace"
)
CLAIMED = counter(
    "duetime_timers_claimed_total", "Claims: timers that this process took to fire.", "namespace"
)
FINISHED = counter(
    "duetime_timers_finished_total",
    "Timers whose last attempt was made, by the status that it leads to: completed or failed.",
    "namespace", "type", "status",
)  # fmt: skip
ATTEMPTS = counter(
    "duetime_attempts_total",
    "Attempts to deliver, by outcome: completed, rescheduled, failed or interrupted.",
    "namespace", "type", "outcome",
)  # fmt: skip
LATENESS = histogram(
    "duetime_lateness_seconds",
    "Time from the instant that an attempt was due to the instant it was sent.",
    buckets.LATENESS,
    "namespace", "type",
)  # fmt: skip
ATTEMPT_DURATION = histogram(
    "duetime_attempt_duration_seconds",
    "Time from sending an attempt to its answer or failure.",
    buckets.ATTEMPT,
    "namespace", "type",
)  # fmt: skip
TIMERS = gauge(
    "duetime_timers",
    "Timers in the store by status: pending, executing or failed. In a cluster every node reports "
    "all of them.",
    "namespace", "status",
)  # fmt: skip
OVERDUE = gauge(
    "duetime_timers_overdue",
    "Pending timers whose next attempt should have begun. In a cluster every node reports all of "
    "them.",
    "namespace",
)  # fmt: skip
COUNTS_CAPPED = gauge(
    "duetime_timers_counts_capped",
    "1 while more timers are overdue or executing than are counted. Their numbers are too low.",
)
COUNTED_AT = gauge(
    "duetime_timers_counted_timestamp_seconds",
    "Instant at which the numbers of duetime_timers and duetime_timers_overdue were read.",
)

TIMERS_METRICS = (
    CREATED, REPLACED, CHANGED, CANCELED, REDRIVEN, CLAIMED, FINISHED, ATTEMPTS, LATENESS,
    ATTEMPT_DURATION, TIMERS, OVERDUE, COUNTS_CAPPED, COUNTED_AT,
)  # fmt: skip
