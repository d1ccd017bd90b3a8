"""Metrics of the message bus and of NATS."""

from duetime.telemetry.metrics.metric import counter, gauge

RECEIVED = counter(
    "duetime_bus_received_total", "Commands that came over the bus, by type.", "type"
)
REJECTED = counter(
    "duetime_bus_rejected_total", "Commands that were rejected, by the code of the error.", "code"
)
PUBLISHED = counter("duetime_bus_published_total", "Messages that were published, by type.", "type")
PUBLISH_FAILED = counter(
    "duetime_bus_publish_failures_total", "Messages that the broker did not take."
)
LAG = gauge("duetime_bus_lag", "Commands that wait in the broker and were not received yet.")
CONNECTED = gauge(
    "duetime_broker_connected",
    "1 while the connection works, by broker: bus or nats.",
    "broker",
)
COMMANDS_RECEIVED = counter(
    "timer_commands_received_total", "The same as duetime_bus_received_total, of all types."
)
SCHEDULES_PROCESSED = counter(
    "timer_schedules_processed_total", "Timers that were fired: attempts of all outcomes."
)

BUS_METRICS = (
    RECEIVED, REJECTED, PUBLISHED, PUBLISH_FAILED, LAG, CONNECTED, COMMANDS_RECEIVED,
    SCHEDULES_PROCESSED,
)  # fmt: skip
