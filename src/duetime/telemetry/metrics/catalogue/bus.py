"""Metrics of the message bus and of NATS."""

from duetime.telemetry.metrics.metric import counter, gauge

RECEIVED = counter(
    "duetime_bus_received_total",
    "Commands that came over the bus and were acknowledged, by result: scheduled, canceled, "
    "unchanged, ignored (too late, or for an unknown timer) or rejected.",
    "result",
)
REJECTED = counter("duetime_bus_rejected_total", "Commands that were rejected.")
PUBLISHED = counter("duetime_bus_published_total", "Events that the broker has stored.")
PUBLISH_FAILED = counter(
    "duetime_bus_publish_failures_total",
    "Attempts to publish an event that failed. Events are tried again.",
)
LAG = gauge(
    "duetime_bus_lag",
    "Commands that wait at the broker: those that no node has received, and those that are not "
    "acknowledged yet.",
)
CONNECTED = gauge(
    "duetime_broker_connected",
    "1 while the connection works, by broker: bus or nats.",
    "broker",
)
COMMANDS_RECEIVED = counter(
    "timer_commands_received_total", "The sum of duetime_bus_received_total."
)
SCHEDULES_PROCESSED = counter(
    "timer_schedules_processed_total", "The sum of duetime_attempts_total."
)

BUS_METRICS = (
    RECEIVED, REJECTED, PUBLISHED, PUBLISH_FAILED, LAG, CONNECTED, COMMANDS_RECEIVED,
    SCHEDULES_PROCESSED,
)  # fmt: skip
