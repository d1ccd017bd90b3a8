"""Metrics of the engine: what it has under way, and what holds it up."""

from duetime.telemetry.metrics.catalogue import buckets
from duetime.telemetry.metrics.metric import counter, gauge, histogram

RUNNING = gauge("duetime_engine_running", "1 while the engine works on its shards, else 0.")
SLOTS = gauge("duetime_slots", "Attempts that may be under way at once (DELIVERY_CONCURRENCY).")
SLOTS_IN_USE = gauge("duetime_slots_in_use", "Attempts under way.")
CLAIMS_WAITING = gauge("duetime_claims_waiting", "Claims that wait for a slot or an endpoint.")
HANDED_BACK = counter(
    "duetime_claims_handed_back_total",
    "Claims that were handed back to the store without an attempt, which follows later, by cause: "
    "lane, slots, breaker, paused, quota, shortage, clock or handover.",
    "cause",
)
UNWRITTEN = gauge(
    "duetime_outcomes_unwritten", "Outcomes of attempts that the store has not written yet."
)
REFUSED_OUTCOMES = counter(
    "duetime_outcomes_refused_total",
    "Outcomes that the store did not apply, because the timer had a newer claim.",
)
LANES = gauge(
    "duetime_lanes",
    "Endpoints with claims, by state: flowing, waiting (claims wait for their turn) or held (by an "
    "open breaker or a pause).",
    "state",
)
BREAKERS = gauge(
    "duetime_breakers",
    "Endpoints that are called, or failed lately, by the state of their breaker: closed, open or "
    "half_open.",
    "state",
)
PAUSED = gauge("duetime_endpoints_paused", "Endpoints that operators have paused, on all nodes.")
SHORTAGES = counter(
    "duetime_local_shortages_total",
    "Attempts that could not be made because this process lacked a resource, such as a descriptor.",
)
CALLBACKS_REFUSED = counter(
    "duetime_callbacks_refused_total",
    "Attempts that were not made because the address is not allowed (CALLBACK_NETWORKS).",
)
READ_DURATION = histogram(
    "timer_polling_duration_seconds",
    "Duration of the reads of due timers.",
    buckets.STORE_CALL,
)
READ_AT = gauge(
    "duetime_due_read_timestamp_seconds",
    "Instant of the last successful read of due timers.",
)
ENDPOINT_ATTEMPTS = counter(
    "duetime_endpoint_attempts_total",
    "Attempts by endpoint and outcome, for the first endpoints up to METRICS_ENDPOINTS.",
    "endpoint", "outcome",
)  # fmt: skip
ENDPOINT_OPEN = gauge(
    "duetime_endpoint_breaker_open",
    "1 while the breaker of the endpoint is open, for endpoints up to METRICS_ENDPOINTS.",
    "endpoint",
)

ENGINE_METRICS = (
    RUNNING, SLOTS, SLOTS_IN_USE, CLAIMS_WAITING, HANDED_BACK, UNWRITTEN, REFUSED_OUTCOMES, LANES,
    BREAKERS, PAUSED, SHORTAGES, CALLBACKS_REFUSED, READ_DURATION, READ_AT, ENDPOINT_ATTEMPTS,
    ENDPOINT_OPEN,
)  # fmt: skip
