"""Commands and events of the bus. The number in a call id identifies its timer."""

from bench.harness.create_bodies import moment_text, random_id
from duetime.bus.messages import DUE_TIME_REACHED, DueTimeReached, DueTimeReachedEnvelope, encode
from duetime.domain.namespace import DEFAULT_NAMESPACE


def call_id(number: int) -> str:
    """A random id that ends with the number."""
    return f"{random_id()}-{number}"


def number_of(service_call_id: str) -> int:
    """The number in a call id; -1 for an unknown id."""
    digits = service_call_id.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else -1


def correlation_of(number: int) -> str:
    return f"bench-{number}"


def schedule_timer(message_id: str, number: int, due_us: int, now_ms: int) -> bytes:
    """A `ScheduleTimer` command in its envelope."""
    return (
        f'{{"id":"{message_id}","type":"ScheduleTimer","tenantId":"{DEFAULT_NAMESPACE}",'
        f'"timestampMs":{now_ms},"correlationId":"{correlation_of(number)}",'
        f'"payload":{{"tenantId":"{DEFAULT_NAMESPACE}","serviceCallId":"{call_id(number)}",'
        f'"dueAt":"{moment_text(due_us)}"}}}}'
    ).encode()


def due_time_reached(message_id: str, number: int, now_us: int) -> bytes:
    """A `DueTimeReached` event as the server publishes it, for the bare limit."""
    id_ = call_id(number)
    return encode(
        DueTimeReachedEnvelope(
            id=message_id,
            type=DUE_TIME_REACHED,
            tenant_id=DEFAULT_NAMESPACE,
            aggregate_id=id_,
            timestamp_ms=now_us // 1_000,
            correlation_id=correlation_of(number),
            payload=DueTimeReached(
                tenant_id=DEFAULT_NAMESPACE, service_call_id=id_, reached_at=moment_text(now_us)
            ),
        )
    )
