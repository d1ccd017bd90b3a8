"""Streams and the consumer of commands: found, or created where they are missing."""

from typing import Any

import msgspec
from msgspec import Struct

from duetime.delivery.nats import NatsConnection, NatsFailure
from duetime.delivery.nats.connection import NO_RESPONDERS, ApiError, is_status
from duetime.domain.errors import BusUnavailable
from duetime.ports.bus import Channel

CONSUMER = "duetime"
MAX_ACK_PENDING = 4_096
API_SECONDS = 5.0

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
_NOT_ENABLED = frozenset({10039, 10076})
"""For the account; for the server."""


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
    found = await _stream_of(connection, channel)
    if found is not None:
        return found
    name = _STREAM_NAMES[channel]
    created = await _call(
        connection,
        f"STREAM.CREATE.{name}",
        {"name": name, "subjects": [channel], "storage": "file", **_STREAM_SETTINGS[channel]},
    )
    if created.error is None:
        return name
    # Another node may have been quicker.
    found = await _stream_of(connection, channel)
    if found is None:
        raise BusUnavailable(
            f"{connection.display_name}: cannot create the stream {name} for {channel}: "
            f"{created.error.description}"
        )
    return found


async def _stream_of(connection: NatsConnection, channel: Channel) -> str | None:
    answer = await _call(connection, "STREAM.NAMES", {"subject": channel})
    if answer.error is not None:
        raise _refused(connection, f"find the stream of {channel}", answer.error)
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
    created = await _call(
        connection,
        f"CONSUMER.CREATE.{stream}.{CONSUMER}.{Channel.COMMANDS}",
        {"stream_name": stream, "config": settings, "action": "create"},
    )
    if created.error is not None and not await _has_consumer(connection, stream):
        raise _refused(connection, f"create the consumer {CONSUMER} of {stream}", created.error)


async def _has_consumer(connection: NatsConnection, stream: str) -> bool:
    answer = await _call(connection, f"CONSUMER.INFO.{stream}.{CONSUMER}", None)
    if answer.error is None:
        return True
    if answer.error.err_code == _CONSUMER_MISSING:
        return False
    raise _refused(connection, f"look for the consumer {CONSUMER} of {stream}", answer.error)


async def _call(connection: NatsConnection, name: str, request: dict[str, Any] | None) -> ApiAnswer:
    data = b"" if request is None else msgspec.json.encode(request)
    try:
        message = await connection.request(f"$JS.API.{name}", data, API_SECONDS)
    except NatsFailure as failure:
        raise BusUnavailable(failure.message) from None
    if is_status(message, NO_RESPONDERS):
        raise _without_jetstream(connection)
    try:
        return msgspec.json.decode(message.data, type=ApiAnswer)
    except msgspec.DecodeError as error:
        raise BusUnavailable(f"{connection.display_name}: unreadable answer: {error}") from None


def _refused(connection: NatsConnection, what: str, error: ApiError) -> BusUnavailable:
    if error.err_code in _NOT_ENABLED:
        return _without_jetstream(connection)
    return BusUnavailable(f"{connection.display_name}: cannot {what}: {error.description}")


def _without_jetstream(connection: NatsConnection) -> BusUnavailable:
    return BusUnavailable(
        f"JetStream is not enabled at {connection.display_name}: start the NATS server with "
        "'-js', or set 'jetstream' in its configuration and for the account"
    )
