"""From full lines to timers and namespaces. Errors name the member as the line has it."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, json

from duetime.api.http.decoding import BodyDecoder, InvalidRequest
from duetime.api.http.values import STATUSES, retry_policy_of
from duetime.api.v1.batch_entries import EntryKey, UnreadableEntry, short_text
from duetime.api.v1.full.types import (
    VERSION,
    FullAttempt,
    FullBusCallback,
    FullCallback,
    FullHttpCallback,
    FullLine,
    FullNamespace,
    FullTimer,
)
from duetime.api.v1.namespaces import changed_options
from duetime.domain import instants
from duetime.domain.callback import (
    BusCallback,
    Callback,
    CallbackProtocol,
    HttpCallback,
    NatsCallback,
    Payload,
)
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, parse_duration_ms
from duetime.domain.json_depth import is_deeper_than
from duetime.domain.keys import NamespaceKeys
from duetime.domain.limits import MAX_JSON_DEPTH
from duetime.domain.namespace import DEFAULT_SHARDS, Namespace, NamespaceOptions
from duetime.domain.timer import Attempt, Timer, Wait
from duetime.telemetry.current_work import traceparent_of

FullEntry = FullTimer | FullNamespace | UnreadableEntry
Value = TypeVar("Value")

_CHOICES = {
    "timer.callback.type": "'http', 'nats' or 'bus'",
    "timer.callback.protocol": "'answer' or 'status'",
}


class _Version(Struct, frozen=True):
    full: Raw | UnsetType = UNSET


class _Parts(Struct, frozen=True):
    timer: Raw = Raw(b"")


_decode_version = json.Decoder(_Version).decode
_decode_parts = json.Decoder(_Parts).decode
_decode_json = json.Decoder(Raw).decode
# The depth of payload and metadata is checked by itself: the line has more levels than a create.
_decode_line = BodyDecoder(FullLine, _CHOICES, limits_depth=False).decode


def is_full(line: bytes) -> bool:
    """Whether the line says that it is a full one, readable or not."""
    if b'"full"' not in line:
        return False
    try:
        return _decode_version(line).full is not UNSET
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return False


def decode_full(line: bytes) -> FullEntry:
    try:
        # First of all: a line of another version may have other members.
        if _decode_version(line).full != Raw(b"%d" % VERSION):
            problem = f"must be {VERSION}: the line may be from a later release of Duetime"
            raise InvalidRequest("full", problem)
        decoded = _decode_line(line, "line")
        if decoded.timer is not UNSET and decoded.namespace is UNSET:
            return decoded.timer
        if decoded.namespace is not UNSET and decoded.timer is UNSET:
            return decoded.namespace
        raise InvalidRequest("line", "must have a timer or a namespace, and not both")
    except InvalidInput as error:
        return UnreadableEntry(_timer_text(line), error)


def full_key(full: FullTimer | FullNamespace) -> EntryKey:
    if isinstance(full, FullNamespace):
        return EntryKey(short_text(full.name), UNSET)
    return EntryKey(short_text(full.namespace), short_text(full.id))


def _timer_text(line: bytes) -> bytes:
    """The text in which the key of an unreadable timer may be found."""
    try:
        return bytes(_decode_parts(line).timer)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return b""


def namespace_of(full: FullNamespace) -> Namespace:
    """Raises `InvalidInput`. The service checks the ranges."""
    shards = full.num_shards
    return Namespace(
        full.name,
        DEFAULT_SHARDS if shards is UNSET or shards is None else shards,
        changed_options(full, NamespaceOptions()),
    )


def timer_of(full: FullTimer, keys: NamespaceKeys) -> Timer:
    """Raises `InvalidInput`. The service checks the values. `keys` is of the timer's namespace."""
    key, shard, timer_uuid = keys.place(full.id)
    if full.status not in STATUSES:
        raise InvalidRequest("timer.status", f"must be one of {', '.join(STATUSES)}")
    metadata = _json_of("timer.metadata", full.metadata, full.metadata_text)
    return Timer(
        key=key,
        shard=shard,
        timer_uuid=timer_uuid,
        delivery_id=full.delivery_id,
        execute_at=_instant("timer.executeAt", full.execute_at),
        due_at=_instant("timer.dueAt", full.due_at),
        callback=_callback_of(full.callback),
        created_at=_instant("timer.createdAt", full.created_at),
        updated_at=_instant("timer.updatedAt", full.updated_at),
        status=STATUSES[full.status],
        attempt=full.attempt,
        failures=full.failures,
        claim_number=full.claim_number,
        retry_policy=None if full.retry_policy is None else retry_policy_of(full.retry_policy),
        metadata=None if metadata is UNSET else metadata,
        correlation_id=full.correlation_id,
        command_order=full.command_order,
        fingerprint=_fingerprint(full.fingerprint),
        attempts=tuple(map(_attempt_of, full.attempts)),
        last_error=full.last_error,
        executed_at=_instant_or_none("timer.executedAt", full.executed_at),
        claimed_at=_instant_or_none("timer.claimedAt", full.claimed_at),
    )


def _callback_of(full: FullCallback) -> Callback:
    timeout_ms = None
    if full.timeout is not None:
        timeout_ms = _parsed("timer.callback.timeout", parse_duration_ms, full.timeout)
    payload = _json_of("timer.callback.payload", full.payload, full.payload_text)
    traceparent = _traceparent(full.traceparent)
    if isinstance(full, FullBusCallback):
        return BusCallback(payload=payload, timeout_ms=timeout_ms, traceparent=traceparent)
    if isinstance(full, FullHttpCallback):
        return HttpCallback(
            url=full.url,
            headers=full.headers,
            payload=payload,
            timeout_ms=timeout_ms,
            protocol=CallbackProtocol(full.protocol),
            traceparent=traceparent,
        )
    return NatsCallback(
        topic=full.topic,
        key=full.key,
        headers=full.headers,
        payload=payload,
        timeout_ms=timeout_ms,
        ack=full.ack,
        traceparent=traceparent,
    )


def _traceparent(text: str | None) -> str | None:
    if text is not None and traceparent_of(text.encode(errors="replace")) != text:
        raise InvalidInput("timer.callback.traceparent", "must be a W3C traceparent of version 00")
    return text


def _attempt_of(full: FullAttempt) -> Attempt:
    return Attempt(
        number=full.number,
        due_at=_instant("timer.attempts.dueAt", full.due_at),
        claimed_at=_instant("timer.attempts.claimedAt", full.claimed_at),
        sent_at=_instant_or_none("timer.attempts.sentAt", full.sent_at),
        answered_at=_instant_or_none("timer.attempts.answeredAt", full.answered_at),
        recorded_outcome=full.outcome,
        error=full.error,
        answer=full.answer,
        waits=tuple(Wait(wait.cause, wait.microseconds) for wait in full.waits),
    )


def _json_of(field: str, value: Raw | UnsetType, text: str | UnsetType) -> Payload:
    """The JSON value that is given as such or as text."""
    if text is not UNSET:
        if value is not UNSET:
            raise InvalidRequest(f"{field}Text", "and the value itself cannot both be given")
        try:
            value = _decode_json(text)
        except (DecodeError, UnicodeEncodeError, RecursionError):
            raise InvalidRequest(f"{field}Text", "is not valid JSON") from None
    if value is not UNSET and is_deeper_than(bytes(value), MAX_JSON_DEPTH):
        raise InvalidRequest(field, f"is nested deeper than {MAX_JSON_DEPTH} levels")
    return value


def _fingerprint(text: str | None) -> bytes | None:
    if text is None:
        return None
    return _parsed("timer.fingerprint", bytes.fromhex, text, "must be hexadecimal digits")


def _instant(field: str, text: str) -> Instant:
    return _parsed(field, instants.parse_instant, text)


def _instant_or_none(field: str, text: str | None) -> Instant | None:
    return None if text is None else _instant(field, text)


def _parsed(
    field: str, parse: Callable[[str], Value], text: str, problem: str | None = None
) -> Value:
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidRequest(field, problem or str(error)) from None
