"""Finds the streams and the consumer of commands, and creates those that are missing."""

from typing import Any

from msgspec import Struct

from duetime.bus.jetstream.api import call, refused
from duetime.bus.jetstream.stream_requirements import (
    ConsumerSettings,
    StreamSettings,
    require_usable_consumer,
    require_usable_stream,
)
from duetime.nats import NatsConnection
from duetime.nats.connection import ApiError
from duetime.ports.bus import DEDUPLICATION_SECONDS, KEEP_SECONDS, MAX_IN_FLIGHT, Channel

CONSUMER = "duetime"

NANOSECONDS = 1_000_000_000
"""Nanoseconds of a second; JetStream counts durations in them."""

_STREAM_NAMES = {
    Channel.COMMANDS: "TIMER_COMMANDS",
    Channel.EVENTS: "TIMER_EVENTS",
    Channel.REJECTED: "TIMER_REJECTED",
}
_KEPT = {
    "retention": "limits",
    "max_age": KEEP_SECONDS * NANOSECONDS,
    "duplicate_window": DEDUPLICATION_SECONDS * NANOSECONDS,
}
_STREAM_SETTINGS: dict[Channel, dict[str, Any]] = {
    Channel.COMMANDS: {"retention": "workqueue"},
    Channel.EVENTS: _KEPT,
    Channel.REJECTED: _KEPT,
}

_CONSUMER_MISSING = 10014


class CommandSource(Struct, frozen=True):
    """The name of the stream of commands, and the settings of its consumer."""

    stream: str
    consumer: ConsumerSettings


class _NamesAnswer(Struct, frozen=True):
    """The members that Duetime reads. `error` is set only if the call failed."""

    error: ApiError | None = None
    streams: list[str] | None = None


class _StreamAnswer(Struct, frozen=True):
    error: ApiError | None = None
    config: StreamSettings | None = None


class _ConsumerAnswer(Struct, frozen=True):
    error: ApiError | None = None
    config: ConsumerSettings | None = None
    num_pending: int = 0
    num_ack_pending: int = 0


async def set_up(connection: NatsConnection, redeliver_after_seconds: float) -> CommandSource:
    """Create missing streams and consumers. Existing ones stay unchanged; raises `BusUnavailable`
    if one does not meet our requirements."""
    server = connection.display_name
    streams = {channel: await _find_or_create_stream(connection, channel) for channel in Channel}
    for channel, stream in streams.items():
        require_usable_stream(server, stream, channel)
    commands = streams[Channel.COMMANDS]
    consumer = await _find_or_create_consumer(connection, commands.name, redeliver_after_seconds)
    require_usable_consumer(server, CONSUMER, consumer, commands)
    return CommandSource(stream=commands.name, consumer=consumer)


async def _find_or_create_stream(connection: NatsConnection, channel: Channel) -> StreamSettings:
    """The stream that stores the channel's subject, whatever its name."""
    found = await stream_of(connection, channel)
    if found is not None:
        return await _stream_settings(connection, found)
    name = _STREAM_NAMES[channel]
    created = await call(
        connection,
        f"STREAM.CREATE.{name}",
        {"name": name, "subjects": [channel], "storage": "file", **_STREAM_SETTINGS[channel]},
        _StreamAnswer,
    )
    if created.config is not None:
        return created.config
    # Another node may have been faster.
    found = await stream_of(connection, channel)
    if found is None:
        raise refused(connection, f"create the stream {name} for {channel}", created.error)
    return await _stream_settings(connection, found)


async def _stream_settings(connection: NatsConnection, name: str) -> StreamSettings:
    answer = await call(connection, f"STREAM.INFO.{name}", None, _StreamAnswer)
    if answer.config is None:
        raise refused(connection, f"look at the stream {name}", answer.error)
    return answer.config


async def stream_of(connection: NatsConnection, channel: Channel) -> str | None:
    answer = await call(connection, "STREAM.NAMES", {"subject": channel}, _NamesAnswer)
    if answer.error is not None:
        raise refused(connection, f"find the stream of {channel}", answer.error)
    return answer.streams[0] if answer.streams else None


async def _find_or_create_consumer(
    connection: NatsConnection, stream: str, redeliver_after_seconds: float
) -> ConsumerSettings:
    found = await _consumer_settings(connection, stream)
    if found is not None:
        return found
    settings = {
        "durable_name": CONSUMER,
        "name": CONSUMER,
        "filter_subject": Channel.COMMANDS,
        "ack_policy": "explicit",
        "ack_wait": int(redeliver_after_seconds * NANOSECONDS),
        "max_ack_pending": MAX_IN_FLIGHT,
        "max_deliver": -1,
        "deliver_policy": "all",
        "replay_policy": "instant",
    }
    created = await call(
        connection,
        f"CONSUMER.CREATE.{stream}.{CONSUMER}.{Channel.COMMANDS}",
        {"stream_name": stream, "config": settings, "action": "create"},
        _ConsumerAnswer,
    )
    if created.config is not None:
        return created.config
    found = await _consumer_settings(connection, stream)
    if found is None:
        raise refused(connection, f"create the consumer {CONSUMER} of {stream}", created.error)
    return found


async def _consumer_settings(connection: NatsConnection, stream: str) -> ConsumerSettings | None:
    """None if there is no consumer."""
    answer = await call(connection, f"CONSUMER.INFO.{stream}.{CONSUMER}", None, _ConsumerAnswer)
    if answer.config is not None:
        return answer.config
    if answer.error is not None and answer.error.err_code == _CONSUMER_MISSING:
        return None
    raise refused(connection, f"look for the consumer {CONSUMER} of {stream}", answer.error)


async def count_waiting(connection: NatsConnection, stream: str) -> int:
    """The number of commands that are not acknowledged. Raises `BusUnavailable`."""
    answer = await call(connection, f"CONSUMER.INFO.{stream}.{CONSUMER}", None, _ConsumerAnswer)
    if answer.config is None:
        raise refused(connection, f"look for the consumer {CONSUMER} of {stream}", answer.error)
    return answer.num_pending + answer.num_ack_pending
