"""The AsyncAPI document of the bus and the JSON Schemas of its messages, built from their types.

`python -m duetime.bus.asyncapi` rewrites the files below `docs/reference` in the working directory.
"""

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from duetime import __version__
from duetime.bus.messages import (
    CancelTimerEnvelope,
    CommandRejectedEnvelope,
    DueTimeReachedEnvelope,
    ScheduleTimerEnvelope,
)
from duetime.domain.limits import MAX_COMMAND_BYTES
from duetime.ports.bus import Channel

DOCUMENT_PATH = Path("docs/reference/asyncapi.json")
SCHEMAS_PATH = Path("docs/reference/schemas")

# AsyncAPI is JSON of many shapes, like OpenAPI.
Json = dict[str, Any]

ENVELOPES: dict[str, type[Struct]] = {
    "ScheduleTimer": ScheduleTimerEnvelope,
    "CancelTimer": CancelTimerEnvelope,
    "DueTimeReached": DueTimeReachedEnvelope,
    "CommandRejected": CommandRejectedEnvelope,
}

_COMMAND = {
    "id": "01920f6e-7a3b-7cc1-8f2e-5d4c3b2a1908",
    "type": "ScheduleTimer",
    "tenantId": "acme",
    "timestampMs": 1_767_225_600_000,
    "correlationId": "req-7f3a",
    "payload": {
        "tenantId": "acme",
        "serviceCallId": "call-42",
        "dueAt": "2026-01-01T12:00:00Z",
        "payload": {"order": 4711},
    },
}
_CANCELLATION = {
    "id": "01920f6e-7a3f-7b52-9d10-6e5f4a3b2c1d",
    "type": "CancelTimer",
    "tenantId": "acme",
    "timestampMs": 1_767_225_700_000,
    "payload": {"tenantId": "acme", "serviceCallId": "call-42"},
}
_EVENT = {
    "id": "01920f6e-7a41-7d08-b1c3-9a8b7c6d5e4f",
    "type": "DueTimeReached",
    "tenantId": "acme",
    "aggregateId": "call-42",
    "timestampMs": 1_767_268_800_001,
    "correlationId": "req-7f3a",
    "payload": {
        "tenantId": "acme",
        "serviceCallId": "call-42",
        "reachedAt": "2026-01-01T12:00:00.001Z",
        "payload": {"order": 4711},
    },
}
_REJECTION = {
    "id": "5b0c2f4e-93d1-4a7e-8f26-0c1d2e3f4a5b",
    "type": "CommandRejected",
    "tenantId": "acme",
    "timestampMs": 1_767_225_600_004,
    "correlationId": "req-7f3a",
    "causationId": "01920f6e-7a3b-7cc1-8f2e-5d4c3b2a1908",
    "payload": {
        "reason": "payload.dueAt must have a UTC offset, such as 2026-01-01T12:00:00Z",
        "command": b64encode(
            b'{"id":"01920f6e-7a3b-7cc1-8f2e-5d4c3b2a1908","type":"ScheduleTimer",...'
        ).decode(),
    },
}
EXAMPLES: dict[str, Json] = {
    "ScheduleTimer": _COMMAND,
    "CancelTimer": _CANCELLATION,
    "DueTimeReached": _EVENT,
    "CommandRejected": _REJECTION,
}

_DESCRIPTION = (
    "Send a `ScheduleTimer` command to receive a `DueTimeReached` event at its instant, and a "
    "`CancelTimer` command if it is not wanted any more. "
    "Messages are JSON envelopes. Every message is delivered at least once; a repeat has the same "
    "`id`. Messages of one `tenantId.serviceCallId` keep their order."
)
_SUMMARIES = {
    "ScheduleTimer": "Announce a call at an instant.",
    "CancelTimer": "Do not announce a call.",
    "DueTimeReached": "The instant of a call has come.",
    "CommandRejected": "A command was not accepted.",
}
_MEMBERS = {
    "aggregateId": "The call, like `payload.serviceCallId`. Duetime does not use it.",
    "correlationId": "The sender's id for tracing, copied from the command.",
    "causationId": "The `id` of the message that caused this one, if any.",
}
_CHANNELS: dict[Channel, tuple[tuple[str, ...], str]] = {
    Channel.COMMANDS: (
        ("ScheduleTimer", "CancelTimer"),
        "Commands to Duetime. A command is acknowledged once its effect is durable. Its size is at "
        f"most {MAX_COMMAND_BYTES} bytes, not counting `payload.payload`.",
    ),
    Channel.EVENTS: (("DueTimeReached",), "Announcements of timers whose instant has come."),
    Channel.REJECTED: (
        ("CommandRejected",),
        "Commands that were not accepted, each with the reason.",
    ),
}
_OPERATIONS: dict[str, tuple[str, Channel, str, str]] = {
    "receiveScheduleTimer": (
        "receive",
        Channel.COMMANDS,
        "ScheduleTimer",
        "Replaces an earlier command for the same call while its timer is pending. Ignored once "
        "the timer has fired or was canceled. An instant that has passed is announced at once. "
        "`payload` comes back in the event to the letter.",
    ),
    "receiveCancelTimer": (
        "receive",
        Channel.COMMANDS,
        "CancelTimer",
        "Cancels the timer of the call while it is pending; again, it changes nothing. Ignored "
        "once the timer has fired, and if there is none.",
    ),
    "sendDueTimeReached": (
        "send",
        Channel.EVENTS,
        "DueTimeReached",
        "The timer completes after its event is published. If the node dies in between, the event "
        "is published again, with the same id.",
    ),
    "sendCommandRejected": (
        "send",
        Channel.REJECTED,
        "CommandRejected",
        "A rejected command is not retried: its sender corrects it and sends it again.",
    ),
}
_CARRIERS = (
    "On NATS the subject is the name of the channel. The message has the headers `Nats-Msg-Id` "
    "(the `id` of the envelope, by which JetStream drops repeats) and `Partition-Key` "
    "(`tenantId.serviceCallId`), in which white space, control characters, `%` and non-ASCII "
    "characters are percent-encoded. On Redis the stream has the name of the channel, and an "
    "entry has the fields `id`, `key` (`tenantId.serviceCallId`) and `data` (the envelope)."
)


@cache
def asyncapi_document() -> bytes:
    return _encoded(document())


def document() -> Json:
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Duetime",
            "version": __version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "nats": _server("nats", "bus.example.com:4222", "NATS with JetStream."),
            "redis": _server("redis", "bus.example.com:6379", "Redis or Valkey, with streams."),
        },
        "channels": {
            _reference_name(channel): _channel(channel, messages, description)
            for channel, (messages, description) in _CHANNELS.items()
        },
        "operations": {
            name: _operation(action, channel, message, description)
            for name, (action, channel, message, description) in _OPERATIONS.items()
        },
        "components": {
            "messages": {name: _message(name) for name in ENVELOPES},
            "schemas": _components("#/components/schemas/", *ENVELOPES.values()),
        },
    }


def json_schema(name: str) -> Json:
    """The schema of one envelope, without references to anything outside."""
    components = _components("#/$defs/", ENVELOPES[name])
    envelope = components.pop(ENVELOPES[name].__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **envelope,
        "title": name,
        "examples": [EXAMPLES[name]],
        "$defs": components,
    }


def files() -> dict[Path, bytes]:
    """The files below `docs/reference`, for readers without a server at hand."""
    schemas = {SCHEMAS_PATH / f"{name}.json": _encoded(json_schema(name)) for name in ENVELOPES}
    return {DOCUMENT_PATH: asyncapi_document(), **schemas}


def _server(protocol: str, host: str, description: str) -> Json:
    return {"host": host, "protocol": protocol, "description": description}


def _channel(channel: Channel, messages: Iterable[str], description: str) -> Json:
    return {
        "address": channel.value,
        "title": channel.value,
        "description": f"{description} {_CARRIERS}",
        "servers": [{"$ref": "#/servers/nats"}, {"$ref": "#/servers/redis"}],
        "messages": {each: {"$ref": f"#/components/messages/{each}"} for each in messages},
    }


def _operation(action: str, channel: Channel, message: str, description: str) -> Json:
    name = _reference_name(channel)
    return {
        "action": action,
        "title": f"{action.capitalize()} {message}",
        "channel": {"$ref": f"#/channels/{name}"},
        "summary": _SUMMARIES[message],
        "description": description,
        "messages": [{"$ref": f"#/channels/{name}/messages/{message}"}],
    }


def _message(name: str) -> Json:
    return {
        "name": name,
        "title": name,
        "summary": _SUMMARIES[name],
        "contentType": "application/json",
        "correlationId": {"location": "$message.payload#/correlationId"},
        "headers": {
            "type": "object",
            "properties": {
                "Nats-Msg-Id": {"type": "string", "description": "On NATS: the envelope's `id`."},
                "Partition-Key": {
                    "type": "string",
                    "description": "On NATS: `tenantId.serviceCallId`. Characters that a header "
                    "cannot carry are percent-encoded.",
                },
            },
        },
        "payload": {"$ref": f"#/components/schemas/{ENVELOPES[name].__name__}"},
        "examples": [{"name": name, "payload": EXAMPLES[name]}],
    }


def _components(prefix: str, *envelopes: type[Struct]) -> Json:
    _, components = json.schema_components(list(envelopes), ref_template=prefix + "{name}")
    for schema in components.values():
        schema["description"] = " ".join(schema["description"].split())
        for member, description in _MEMBERS.items():
            if member in schema["properties"]:
                schema["properties"][member]["description"] = description
    return components


def _reference_name(channel: Channel) -> str:
    """The channel's name in AsyncAPI references, where a dot would read like a path."""
    first, *others = channel.value.split(".")
    return first + "".join(map(str.capitalize, others))


def _encoded(content: Json) -> bytes:
    return json.format(json.encode(content), indent=2) + b"\n"


if __name__ == "__main__":
    for path, content in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
