"""What is to be called when a timer is due, and how its answer is read."""

from enum import StrEnum

from msgspec import UNSET, Raw, Struct, UnsetType

DEFAULT_TIMEOUT_MS = 30_000

Payload = Raw | UnsetType
"""The client's JSON, to the letter; unset when there is none, which is not the same as null."""


class CallbackProtocol(StrEnum):
    """How an HTTP callback is worded and its answer is read."""

    STATUS = "status"
    """The payload is the body; any 2xx completes the timer, whatever the answer's body says."""

    ANSWER = "answer"
    """The body is `{namespace, id, executeAt, attempt, payload}`; a 200 must carry
    `{"ok": true}`, or `{"ok": false}` with or without `nextExecuteAt`."""


class HttpCallback(
    Struct, frozen=True, kw_only=True, tag="http", tag_field="type", omit_defaults=True
):
    """A POST to `url`. Header names and values have been checked to be safe on the wire."""

    url: str
    headers: dict[str, str] | None = None
    payload: Payload = UNSET
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    protocol: CallbackProtocol = CallbackProtocol.STATUS


class NatsCallback(
    Struct, frozen=True, kw_only=True, tag="nats", tag_field="type", omit_defaults=True
):
    """A message published on `topic`, or on `topic.key` when there is a key."""

    topic: str
    key: str | None = None
    headers: dict[str, str] | None = None
    payload: Payload = UNSET
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class BusCallback(
    Struct, frozen=True, kw_only=True, tag="bus", tag_field="type", omit_defaults=True
):
    """A `DueTimeReached` event on the bus this service is connected to."""

    timeout_ms: int = DEFAULT_TIMEOUT_MS


Callback = HttpCallback | NatsCallback | BusCallback
