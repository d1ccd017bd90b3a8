"""What is to be called when a timer is due, and how its answer is read."""

from enum import StrEnum

from msgspec import UNSET, Raw, Struct, UnsetType

DEFAULT_TIMEOUT_MS = 30_000
"""How long an attempt may take where nobody has set anything else."""

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
    Struct, frozen=True, kw_only=True, tag="http", tag_field="type", omit_defaults=True, gc=False
):
    """A POST to `url`. Header names and values have been checked to be safe on the wire.

    Here and in the other callbacks, no `timeout_ms` means the one that the service is set to.
    """

    url: str
    headers: dict[str, str] | None = None
    payload: Payload = UNSET
    timeout_ms: int | None = None
    protocol: CallbackProtocol = CallbackProtocol.STATUS


class NatsCallback(
    Struct, frozen=True, kw_only=True, tag="nats", tag_field="type", omit_defaults=True
):
    """A message published on `topic`, or on `topic.key` when there is a key. With `ack` it has
    to be stored by a JetStream stream."""

    topic: str
    key: str | None = None
    headers: dict[str, str] | None = None
    payload: Payload = UNSET
    timeout_ms: int | None = None
    ack: bool = False

    @property
    def subject(self) -> str:
        return self.topic if self.key is None else f"{self.topic}.{self.key}"


class BusCallback(
    Struct, frozen=True, kw_only=True, tag="bus", tag_field="type", omit_defaults=True
):
    """A `DueTimeReached` event on the bus this service is connected to."""

    timeout_ms: int | None = None


Callback = HttpCallback | NatsCallback | BusCallback
