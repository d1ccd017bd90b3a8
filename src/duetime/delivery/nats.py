"""NATS callbacks."""

import re

from msgspec import UNSET

from duetime.delivery.callback_headers import FIELD as HEADERS_FIELD
from duetime.delivery.callback_headers import check_headers
from duetime.delivery.signing import signature_of
from duetime.domain.callback import Callback, NatsCallback
from duetime.domain.errors import InvalidInput, LocalShortage
from duetime.domain.instants import MICROSECONDS_PER_SECOND, Instant
from duetime.domain.limits import MAX_SUBJECT_CHARACTERS
from duetime.domain.outcome import Completed, Failed, Outcome
from duetime.domain.timer import Claim
from duetime.nats.connection import NatsConnection
from duetime.nats.failures import NatsFailure
from duetime.ports.bus import Channel
from duetime.ports.clock import Clock
from duetime.ports.destination import MaySend
from duetime.ports.signer import NoSigners, SignerView
from duetime.telemetry.current_work import TRACE_HEADERS, outgoing_traceparent

_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
_CHANNELS = frozenset(Channel)
_OURS = frozenset(
    {"nats-msg-id", "webhook-id", "webhook-timestamp", "webhook-signature", "timer-attempt"}
)


class NatsDestination:
    """Publishes the payload. The attempt completes when the server has the message, or with
    `ack` when a stream has stored it.

    `Nats-Msg-Id` is the same in every attempt of a firing, so a stream drops repeats. The signers
    of the timer's namespace sign the message as they sign one over HTTP.
    """

    def __init__(
        self,
        connection: NatsConnection,
        clock: Clock,
        default_timeout_ms: int,
        *,
        signers: SignerView | None = None,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._default_timeout_ms = default_timeout_ms
        self._signers = NoSigners() if signers is None else signers

    def check(self, callback: Callback) -> None:
        assert isinstance(callback, NatsCallback)
        check_callback(callback)

    def endpoint_of(self, claim: Claim) -> str:
        callback = claim.callback
        assert isinstance(callback, NatsCallback)
        server = self._connection.display_name
        # The server takes a plain publish at once. A stream may be slow or missing, and the
        # callbacks of other topics must not wait for it.
        return f"{server} {callback.topic}" if callback.ack else server

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        callback = claim.callback
        assert isinstance(callback, NatsCallback)
        publish = (
            self._connection.publish_stored if callback.ack else self._connection.publish_flushed
        )
        sent_at = self._clock.now()
        body = b"" if callback.payload is UNSET else bytes(callback.payload)
        headers = _headers(claim, callback.headers, sent_at, outgoing_traceparent())
        signers = self._signers.signers(claim.namespace)
        if signers:
            seconds = sent_at // MICROSECONDS_PER_SECOND
            signature = signature_of(signers, claim.delivery_id, seconds, body)
            headers["webhook-signature"] = signature.decode()
        try:
            await publish(
                callback.subject,
                body,
                headers,
                (callback.timeout_ms or self._default_timeout_ms) / 1_000,
            )
        except NatsFailure as failure:
            if failure.lacks is not None:
                raise LocalShortage(failure.lacks) from None
            return Failed(
                sent_at=sent_at,
                answered_at=self._clock.now(),
                error=f"NATS: {failure.message}",
                blames_endpoint=failure.blames_server,
            )
        return Completed(sent_at=sent_at, answered_at=self._clock.now())

    async def close(self) -> None:
        await self._connection.close()


def _headers(
    claim: Claim, headers: dict[str, str] | None, sent_at: Instant, traceparent: str | None
) -> dict[str, str]:
    """The client's headers, and ours that identify the delivery and override the client's."""
    ours = _OURS if traceparent is None else _OURS | TRACE_HEADERS
    theirs = {name: value for name, value in (headers or {}).items() if name.lower() not in ours}
    if traceparent is not None:
        theirs["traceparent"] = traceparent
    return theirs | {
        "Nats-Msg-Id": claim.delivery_id,
        "webhook-id": claim.delivery_id,
        "webhook-timestamp": str(sent_at // MICROSECONDS_PER_SECOND),
        "Timer-Attempt": str(claim.attempt),
    }


def check_callback(callback: NatsCallback) -> None:
    _check_subject("callback.topic", callback.topic)
    if callback.topic.startswith("$"):
        raise InvalidInput(
            "callback.topic", "must not start with $: such subjects belong to the server"
        )
    if callback.subject in _CHANNELS:
        raise InvalidInput(
            "callback.topic",
            f"must not form {callback.subject}, which is a channel of the bus",
        )
    if callback.key is not None:
        _check_subject("callback.key", callback.key)
        if len(callback.subject) > MAX_SUBJECT_CHARACTERS:
            raise InvalidInput(
                "callback.key",
                f"must not make the subject longer than {MAX_SUBJECT_CHARACTERS} characters",
            )
    if callback.headers:
        check_headers(callback.headers, "utf-8", "Unicode")
        for name in callback.headers:
            if name.lower().startswith("nats-"):
                raise InvalidInput(
                    f"{HEADERS_FIELD}.{name}",
                    "must not start with Nats-: such headers belong to the server",
                )


def _check_subject(field: str, text: str) -> None:
    """Refuse text that is not the subject, or a part of the subject, of one message."""
    if not text:
        raise InvalidInput(field, "must not be empty")
    if len(text) > MAX_SUBJECT_CHARACTERS:
        raise InvalidInput(field, f"must not be longer than {MAX_SUBJECT_CHARACTERS} characters")
    if _UNSAFE.search(text):
        raise InvalidInput(field, "must not contain white space or control characters")
    if "*" in text or ">" in text:
        raise InvalidInput(field, "must not contain wildcards (* or >)")
    if "" in text.split("."):
        raise InvalidInput(field, "must not have an empty part between, before or after dots")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field, "must be valid Unicode text") from None
