"""Streams and the consumer of commands: found, or created where they are missing."""

from typing import Any

from msgspec import Struct

from duetime.bus.jetstream_api import call, refused
from duetime.delivery.nats import NatsConnection
from duetime.delivery.nats.connection import ApiError
from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Channel

CONSUMER = "duetime"
MAX_ACK_PENDING = 4_096

_NANOSECONDS = 1_000_000_000
_DAY_SECONDS = 86_400

_STREAM_NAMES = {
    Channel.COMMANDS: "TIMER_COMMANDS",
    Channel.EVENTS: "TIMER_EVENTS",
    Channel.REJECTED: "TIMER_REJECTED",
}
_KEPT = {
    "retention": "limits",
    "max_age": 7 * _DAY_SECONDS * _NANOSECONDS,
    "duplicate_window": 120 * _NANOSECONDS,
}
_STREAM_SETTINGS: dict[Channel, dict[str, Any]] = {
    Channel.COMMANDS: {"retention": "workqueue"},
    Channel.EVENTS: _KEPT,
    Channel.REJECTED: _KEPT,
}

_CONSUMER_MISSING = 10014


class ApiAnswer(Struct, frozen=True):
    """As much of it as matters to us. A call that failed has an error, and all others have not."""

    error: ApiError | None = None
    streams: list[str] | None = None


async def set_up(connection: NatsConnection, redeliver_after_seconds: float) -> str:
    """Create what is missing and leave alone what is there. Answers the name of the stream that
    holds the commands."""
    commands, *_ = [await _find_or_create_stream(connection, channel) for channel in Channel]
    await _find_or_create_consumer(connection, commands, redeliver_after_seconds)
    return commands


async def _find_or_create_stream(connection: NatsConnection, channel: Channel) -> str:
    """Whatever it is called, the stream that stores the subject is the one to use."""
    found = await stream_of(connection, channel)
    if found is not None:
        return found
    name = _STREAM_NAMES[channel]
    created = await call(
        connection,
        f"STREAM.CREATE.{name}",
        {"name": name, "subjects": [channel], "storage": "file", **_STREAM_SETTINGS[channel]},
        ApiAnswer,
    )
    if created.error is None:
        return name
    # Another node may have been quicker.
    found = await stream_of(connection, channel)
    if found is None:
        raise BusUnavailable(
            f"{connection.display_name}: cannot create the stream {name} for {channel}: "
            f"{created.error.description}"
        )
    return found


async def stream_of(connection: NatsConnection, channel: Channel) -> str | None:
    answer = await call(connection, "STREAM.NAMES", {"subject": channel}, ApiAnswer)
    if answer.error is not None:
        raise refused(connection, f"find the stream of {channel}", answer.error)
    return answer.streams[0] if answer.streams else None


async def _find_or_create_consumer(
    connection: NatsConnection, stream: str, redeliver_after_seconds: float
) -> None:
    if await _has_consumer(connection, stream):
        return
    settings = {
        "durable_name": CONSUMER,
        "name": CONSUMER,
        "filter_subject": Channel.COMMANDS,
        "ack_policy": "explicit",
        "ack_wait": int(redeliver_after_seconds * _NANOSECONDS),
        "max_ack_pending": MAX_ACK_PENDING,
        "max_deliver": -1,
        "deliver_policy": "all",
        "replay_policy": "instant",
    }
    created = await call(
        connection,
        f"CONSUMER.CREATE.{stream}.{CONSUMER}.{Channel.COMMANDS}",
        {"stream_name": stream, "config": settings, "action": "create"},
        ApiAnswer,
    )
    if created.error is not None and not await _has_consumer(connection, stream):
        raise refused(connection, f"create the consumer {CONSUMER} of {stream}", created.error)


async def _has_consumer(connection: NatsConnection, stream: str) -> bool:
    answer = await call(connection, f"CONSUMER.INFO.{stream}.{CONSUMER}", None, ApiAnswer)
    if answer.error is None:
        return True
    if answer.error.err_code == _CONSUMER_MISSING:
        return False
    raise refused(connection, f"look for the consumer {CONSUMER} of {stream}", answer.error)
