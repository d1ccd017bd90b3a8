"""The built-in receiver: keeps the callbacks that arrived, for a while and within limits."""

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import NamedTuple, assert_never

from msgspec import Struct

from duetime.domain.callback import ReceiverAddress, ReceiverAnswer
from duetime.domain.errors import LocalShortage
from duetime.domain.instants import MICROSECONDS_PER_MS, Instant
from duetime.domain.keys import TimerKey
from duetime.domain.security.access import Access
from duetime.domain.security.redaction import REDACTED, is_secret
from duetime.domain.timer import Claim
from duetime.ports.clock import Clock
from duetime.ports.signer import SignerView

MAX_RECEIVERS = 100
MAX_CALLBACKS = 50
"""Callbacks that one receiver keeps."""

MAX_BODY_BYTES = 64 * 1024
"""Size of the part of a body that is kept."""

MAX_BYTES = 5 * 1024 * 1024
"""Size of everything that is kept."""

KEPT_SECONDS = 3_600.0
"""Time after which a callback is forgotten."""

SLOW_SECONDS = 5.0
"""Time that the slow answer takes."""

SIGNATURE = "webhook-signature"

_OVERHEAD_BYTES = 512
"""Size of a callback that has neither headers nor a body."""

_OK = b'{"ok":true}'

Header = tuple[str, str]


class Received(Struct, frozen=True, kw_only=True):
    """A callback that arrived. Values of headers that are secrets are redacted. `body` is cut to
    `MAX_BODY_BYTES`, and `body_bytes` is its whole size."""

    number: int
    """Counts the callbacks of the process."""
    key: TimerKey
    attempt: int
    due_at: Instant
    arrived_at: Instant
    headers: Sequence[Header]
    is_verified: bool
    """Whether the signature is that of the secrets of the namespace."""
    body: bytes
    body_bytes: int
    status: int
    """The status of the answer."""

    @property
    def lateness_ms(self) -> float:
        return (self.arrived_at - self.due_at) / MICROSECONDS_PER_MS

    @property
    def is_signed(self) -> bool:
        return any(name.lower() == SIGNATURE for name, _ in self.headers)

    @property
    def is_cut(self) -> bool:
        return self.body_bytes > len(self.body)

    @property
    def size(self) -> int:
        """Size that counts against the limit."""
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return _OVERHEAD_BYTES + headers + len(self.body)


class _Kept(NamedTuple):
    since_seconds: float
    size: int
    callback: Received


class _Receiver:
    def __init__(self) -> None:
        self.kept: deque[_Kept] = deque()
        """Oldest first."""
        self.size = 0
        self.watched_seconds = -inf
        self.used_seconds = 0.0

    def add(self, kept: _Kept) -> None:
        self.kept.append(kept)
        self.size += kept.size
        self.used_seconds = kept.since_seconds
        if len(self.kept) > MAX_CALLBACKS:
            self.drop_oldest()

    def drop_oldest(self) -> None:
        self.size -= self.kept.popleft().size

    @property
    def last_seconds(self) -> float:
        """The last time that something arrived, or that a page showed it."""
        return max(self.watched_seconds, self.used_seconds)

    @property
    def worth(self) -> tuple[bool, float, float]:
        """One that has callbacks is worth more than an empty one, and one that a page shows more
        than one that nobody looks at."""
        return bool(self.kept), self.watched_seconds, self.used_seconds


class Inbox:
    """Implements the inbox port in the memory of the process. Other processes have their own.

    A callback leaves when it is an hour old, when its receiver has more than `MAX_CALLBACKS`, or
    when everything is larger than `MAX_BYTES`: then the receiver with most gives way. Beyond
    `MAX_RECEIVERS` empty ones go first, then those that no page has shown for longest. Looking at
    a receiver never costs another one its callbacks.
    """

    def __init__(self, clock: Clock, signers: SignerView) -> None:
        self._clock = clock
        self._signers = signers
        self._receivers: dict[str, _Receiver] = {}
        self._received = 0

    async def receive(
        self, claim: Claim, address: ReceiverAddress, head: bytes, body: bytes
    ) -> tuple[int, bytes]:
        status = _status_of(address.answer, claim.attempt)
        headers = _headers_in(head)
        self._received += 1
        callback = Received(
            number=self._received,
            key=TimerKey(claim.namespace, claim.id),
            attempt=claim.attempt,
            due_at=claim.due_at,
            arrived_at=self._clock.now(),
            headers=[_shown(*header) for header in headers],
            is_verified=self._is_verified(claim.namespace, headers, body),
            body=body[:MAX_BODY_BYTES],
            body_bytes=len(body),
            status=status,
        )
        self._keep(address.token, callback)
        if address.answer is ReceiverAnswer.SLOW:
            await self._clock.sleep(SLOW_SECONDS)
        return status, _OK if status == 200 else b""

    def watch(self, token: str, access: Access) -> list[Received]:
        """The callbacks of a receiver that the caller may see, newest first."""
        self._forget_old()
        if token not in self._receivers and not self._has_room():
            return []
        receiver = self._receiver(token)
        receiver.watched_seconds = self._clock.monotonic()
        return [
            each.callback
            for each in reversed(receiver.kept)
            if access.sees(each.callback.key.namespace)
        ]

    def _is_verified(self, namespace: str, headers: Sequence[Header], body: bytes) -> bool:
        """Whether every secret of the namespace signed what arrived, as a receiver would check."""
        given = {name.lower(): value for name, value in headers}
        signatures = given.get(SIGNATURE, "").encode().split(b" ")
        content = f"{given.get('webhook-id')}.{given.get('webhook-timestamp')}.".encode() + body
        try:
            signers = self._signers.signers(namespace)
        except LocalShortage:
            return False
        return bool(signers) and all(each.sign(content) in signatures for each in signers)

    def _keep(self, token: str, callback: Received) -> None:
        self._forget_old()
        receiver = self._receiver(token)
        receiver.add(_Kept(self._clock.monotonic(), callback.size, callback))
        while sum(each.size for each in self._receivers.values()) > MAX_BYTES:
            max(self._receivers.values(), key=lambda each: each.size).drop_oldest()

    def _has_room(self) -> bool:
        """Whether there is a place for another receiver, or an empty one to give way."""
        every = self._receivers.values()
        return len(every) < MAX_RECEIVERS or not all(each.kept for each in every)

    def _receiver(self, token: str) -> _Receiver:
        receiver = self._receivers.get(token)
        if receiver is None:
            if len(self._receivers) >= MAX_RECEIVERS:
                del self._receivers[min(self._receivers, key=lambda at: self._receivers[at].worth)]
            receiver = self._receivers[token] = _Receiver()
        return receiver

    def _forget_old(self) -> None:
        since = self._clock.monotonic() - KEPT_SECONDS
        for token, receiver in list(self._receivers.items()):
            while receiver.kept and receiver.kept[0].since_seconds <= since:
                receiver.drop_oldest()
            if not receiver.kept and receiver.last_seconds <= since:
                del self._receivers[token]


def _status_of(answer: ReceiverAnswer, attempt: int) -> int:
    match answer:
        case ReceiverAnswer.OK | ReceiverAnswer.SLOW:
            return 200
        case ReceiverAnswer.FAIL:
            return 500
        case ReceiverAnswer.FAIL_TWICE:
            return 500 if attempt <= 2 else 200
        case ReceiverAnswer.GONE:
            return 410
        case _ as unreachable:
            assert_never(unreachable)


def _headers_in(head: bytes) -> list[Header]:
    lines = (line.partition(": ") for line in head.decode("latin-1").split("\r\n"))
    return [(name, value) for name, colon, value in lines if colon]


def _shown(name: str, value: str) -> Header:
    """Our own signature is no secret: it is made to be sent."""
    is_hidden = is_secret(name) and name.lower() != SIGNATURE
    return name, REDACTED if is_hidden else value
