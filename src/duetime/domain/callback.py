"""Callbacks: the call made when a timer is due, and how its answer is read."""

import re
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import UNSET, Raw, Struct, UnsetType

Payload = Raw | UnsetType
"""The client's JSON, verbatim; unset when there is none, which is not the same as null."""


class CallbackProtocol(StrEnum):
    """The form of an HTTP callback's body and answer."""

    STATUS = "status"
    """The payload is the body; any 2xx completes the timer, whatever the body of the answer."""

    ANSWER = "answer"
    """The body is `{namespace, id, executeAt, attempt, payload}`; a 200 must carry
    `{"ok": true}`, or `{"ok": false}` with or without `nextExecuteAt`."""


class HttpCallback(
    Struct, frozen=True, kw_only=True, tag="http", tag_field="type", omit_defaults=True, gc=False
):
    """A POST to `url`. Header names and values have been checked to be safe on the wire.

    Without a `timeout_ms`, the service's setting applies (here and in the other callbacks).
    `sealed` has the headers and the payload if the store keeps them encrypted; they are absent
    then, and so are the secrets of the URL. `traceparent` is the trace context of the request that
    gave the callback, if it had one. It is no part of what the client asked for: requests that
    differ in it only are equal.
    """

    url: str
    headers: dict[str, str] | None = None
    payload: Payload = UNSET
    timeout_ms: int | None = None
    protocol: CallbackProtocol = CallbackProtocol.STATUS
    sealed: str | None = None
    traceparent: str | None = None


class NatsCallback(
    Struct, frozen=True, kw_only=True, tag="nats", tag_field="type", omit_defaults=True
):
    """A message published on `topic`, or on `topic.key` when there is a key. With `ack` a
    JetStream stream has to store it."""

    topic: str
    key: str | None = None
    headers: dict[str, str] | None = None
    payload: Payload = UNSET
    timeout_ms: int | None = None
    ack: bool = False
    sealed: str | None = None
    traceparent: str | None = None

    @property
    def subject(self) -> str:
        return self.topic if self.key is None else f"{self.topic}.{self.key}"


class BusCallback(
    Struct, frozen=True, kw_only=True, tag="bus", tag_field="type", omit_defaults=True
):
    """A `DueTimeReached` event on the bus that this service is connected to."""

    payload: Payload = UNSET
    timeout_ms: int | None = None
    sealed: str | None = None
    traceparent: str | None = None


Callback = HttpCallback | NatsCallback | BusCallback


RECEIVER_HOST = "receiver.duetime.invalid"
"""The host of the built-in receiver. Callbacks to it stay within the process, whatever their scheme
and port. No real host can have a name below `invalid` (RFC 6761)."""

_RECEIVER_PATH = re.compile(r"/(?P<token>[A-Za-z0-9_-]{8,64})(?:/(?P<answer>[a-z0-9-]{1,20}))?/?")


class ReceiverAnswer(StrEnum):
    """The answers of the built-in receiver. The words are a part of its URLs."""

    OK = "200"
    FAIL = "500"
    FAIL_TWICE = "500-twice"
    """The first two attempts get 500, and the third gets 200."""
    GONE = "410"
    SLOW = "slow"
    """200, after a few seconds."""


class ReceiverAddress(Struct, frozen=True):
    """A URL of the built-in receiver: the token tells whose it is, the answer what it answers."""

    token: str
    answer: ReceiverAnswer = ReceiverAnswer.OK

    @property
    def url(self) -> str:
        ending = "" if self.answer is ReceiverAnswer.OK else f"/{self.answer.value}"
        return f"https://{RECEIVER_HOST}/{self.token}{ending}"

    @classmethod
    def parse(cls, url: str) -> "ReceiverAddress":
        """The address in a URL of the receiver's host. Raises ValueError with a text that completes
        a sentence: "callback.url must be ..."."""
        found = _RECEIVER_PATH.fullmatch(urlsplit(url).path)
        answers = {each.value: each for each in ReceiverAnswer}
        answer = None if found is None else answers.get(found["answer"] or ReceiverAnswer.OK.value)
        if found is None or answer is None:
            raise ValueError(
                f"must be https://{RECEIVER_HOST}/TOKEN or https://{RECEIVER_HOST}/TOKEN/ANSWER, "
                "with a token of 8 to 64 letters and digits, and one of these answers: "
                + ", ".join(answers)
            )
        return cls(found["token"], answer)
