"""Tells senders why their commands were rejected."""

import asyncio
from base64 import b64encode
from collections import deque
from collections.abc import Sequence
from hashlib import blake2b
from uuid import UUID

import msgspec
import structlog
from msgspec import UNSET, Struct, UnsetType

from duetime.bus.commands import UNREADABLE
from duetime.bus.messages import (
    COMMAND_REJECTED,
    CommandRejected,
    CommandRejectedEnvelope,
    encode,
    key_of,
)
from duetime.domain.errors import BusUnavailable
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant
from duetime.domain.limits import MAX_CORRELATION_CHARACTERS
from duetime.ports.bus import Bus, Channel, OutgoingMessage, ReceivedCommand
from duetime.ports.clock import Clock
from duetime.service.reporting.bus_report import (
    MAX_REASON_CHARACTERS,
    MAX_REJECTIONS,
    RejectedCommand,
)

_log = structlog.get_logger()

LOG_SECONDS = 10.0
"""Time between two log lines of a kind, as there may be thousands of rejections a second."""

RETURNED_COMMAND_BYTES = 16_384
"""Size of the command's copy in a rejection; a longer command is cut."""


class _Readable(Struct, rename="camel"):
    """Members that a rejection repeats if they are readable."""

    id: object = UNSET
    tenant_id: object = UNSET
    correlation_id: object = UNSET


_decode_readable = msgspec.json.Decoder(_Readable).decode


class Rejected(Struct, frozen=True):
    command: ReceivedCommand
    reason: str


class Rejections:
    """Publishes rejections. Publishing its rejection finishes a command.

    If the broker is up but refuses the rejection, for example because the channel is full, the
    rejection is logged and the command is finished all the same: bad commands must never hold up
    good ones. While the broker is away, rejected commands are not finished and come again.
    """

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._published_line = LogLine(clock)
        self._lost_line = LogLine(clock)
        self._kept: deque[RejectedCommand] = deque(maxlen=MAX_REJECTIONS)

    @property
    def latest(self) -> list[RejectedCommand]:
        """The latest rejections of this process, the last one first."""
        return list(reversed(self._kept))

    async def publish(self, rejected: Sequence[Rejected]) -> list[ReceivedCommand]:
        """Returns the finished commands, for the caller to acknowledge."""
        now = self._clock.now()
        problems = await asyncio.gather(
            *(
                self._bus.publish(rejection_message(each.command, each.reason, now))
                for each in rejected
            ),
            return_exceptions=True,
        )
        published, refused = [], []
        for each, problem in zip(rejected, problems, strict=True):
            if problem is None:
                published.append(each)
            elif not isinstance(problem, BusUnavailable):
                raise problem
            elif self._bus.is_connected:
                refused.append((each, problem.message))
        self._keep(published, now, is_published=True)
        self._keep([each for each, _ in refused], now, is_published=False)
        if published and (count := self._published_line.add(len(published))):
            _log.warning("bus.commands_rejected", count=count, reason=published[-1].reason)
        if refused and (count := self._lost_line.add(len(refused))):
            last, why = refused[-1]
            readable = _readable(last.command.data)
            # Without the command itself, which may have a payload.
            _log.error(
                "bus.rejections_lost",
                count=count,
                error=why,
                reason=last.reason,
                command_id=_text(readable.id) or None,
                tenant=_text(readable.tenant_id) or None,
                size_bytes=len(last.command.data),
            )
        return [each.command for each in published] + [each.command for each, _ in refused]

    def _keep(self, rejected: Sequence[Rejected], now: Instant, *, is_published: bool) -> None:
        for each in rejected[-MAX_REJECTIONS:]:
            readable = _readable(each.command.data)
            self._kept.append(
                RejectedCommand(
                    at=now,
                    reason=_cut(each.reason, MAX_REASON_CHARACTERS),
                    tenant=_text(readable.tenant_id) or None,
                    command_id=_text(readable.id) or None,
                    size_bytes=len(each.command.data),
                    is_published=is_published,
                )
            )


class LogLine:
    """A log line that is written at intervals and counts the events in between."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._written_seconds: float | None = None

    def add(self, count: int) -> int:
        """Count events. Returns their number if it is time for a line, else 0."""
        self._count += count
        now_seconds = self._clock.monotonic()
        if self._written_seconds is not None and now_seconds - self._written_seconds < LOG_SECONDS:
            return 0
        self._written_seconds = now_seconds
        counted, self._count = self._count, 0
        return counted


def rejection_message(command: ReceivedCommand, reason: str, now: Instant) -> OutgoingMessage:
    """The id is derived from the command, so that a repeat is recognized."""
    digest = blake2b(b"%d " % command.order + command.data, digest_size=16).digest()
    readable = _readable(command.data)
    envelope = CommandRejectedEnvelope(
        id=str(UUID(bytes=digest)),
        type=COMMAND_REJECTED,
        tenant_id=_text(readable.tenant_id),
        timestamp_ms=now // MICROSECONDS_PER_MS,
        correlation_id=_text(readable.correlation_id),
        causation_id=_text(readable.id),
        payload=CommandRejected(
            reason=reason, command=b64encode(command.data[:RETURNED_COMMAND_BYTES]).decode()
        ),
    )
    tenant_id = "" if envelope.tenant_id is UNSET else envelope.tenant_id
    return OutgoingMessage(
        channel=Channel.REJECTED,
        id=envelope.id,
        key=key_of(tenant_id, ""),
        data=encode(envelope),
    )


def _readable(data: bytes) -> _Readable:
    try:
        return _decode_readable(data)
    except UNREADABLE:
        return _Readable()


def _text(value: object) -> str | UnsetType:
    return value[:MAX_CORRELATION_CHARACTERS] if isinstance(value, str) and value else UNSET


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1]}…"
