"""HTTP callbacks."""

import asyncio
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import assert_never

from msgspec import UNSET
from msgspec.structs import replace

from duetime import __version__
from duetime.delivery.answer_protocol import format_request, one_line, read_answer
from duetime.delivery.callback_headers import check_headers
from duetime.delivery.callback_routes import CallbackRoutes
from duetime.delivery.http_client import (
    RESERVED_HEADERS,
    DeliveryFailure,
    HttpAnswer,
    HttpClient,
    InvalidUrl,
    LacksResource,
    RefusedAddress,
    Route,
    StaleConnection,
    TimedOut,
    parse_target,
)
from duetime.delivery.signing import signature_of
from duetime.domain.callback import (
    RECEIVER_HOST,
    Callback,
    CallbackProtocol,
    HttpCallback,
    ReceiverAddress,
)
from duetime.domain.defaults import DEFAULT_KEPT_ANSWER_BYTES
from duetime.domain.errors import CallbackRefused, InvalidInput, LocalShortage
from duetime.domain.instants import (
    MICROSECONDS_PER_MS,
    MICROSECONDS_PER_SECOND,
    Instant,
    instant_of,
)
from duetime.domain.outcome import Completed, Failed, Interrupted, NotSent, Outcome
from duetime.domain.security.echoes import has_secrets, without_echoes
from duetime.domain.timer import Claim
from duetime.network_failures import MEMORY
from duetime.ports.clock import Clock
from duetime.ports.destination import CallbackInbox, MaySend
from duetime.ports.signer import NoSigners, SignerView
from duetime.telemetry.current_work import TRACE_HEADERS, outgoing_traceparent

USER_AGENT = f"duetime/{__version__} timer-platform/0.1.0"

_DEFAULT_HEADERS = {"content-type": "application/json", "user-agent": USER_AGENT}
_DEFAULT_LINES = b"Content-Type: application/json\r\nUser-Agent: %b\r\n" % USER_AGENT.encode()
_DELIVERY_LINES = b"webhook-id: %b\r\nwebhook-timestamp: %d\r\nTimer-Attempt: %d\r\n"
_TRACED_DELIVERY_LINES = _DELIVERY_LINES + b"traceparent: %b\r\n"
_DELIVERY_HEADERS = {"webhook-id", "webhook-timestamp", "webhook-signature", "timer-attempt"}
_NEVER_THE_CLIENTS = RESERVED_HEADERS | _DELIVERY_HEADERS
_NEVER_WHEN_TRACED = _NEVER_THE_CLIENTS | TRACE_HEADERS

_TARGETS_REMEMBERED = 4_096

_ASKS_FOR_PATIENCE = frozenset({408, 429})
"""Statuses 4xx that blame the endpoint, not the request."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_target_of = lru_cache(_TARGETS_REMEMBERED)(parse_target)


class HttpDestination:
    """POSTs the callback and reads the answer, both in the callback's protocol. The signers of the
    timer's namespace sign the bytes and the timestamp that are sent.

    Redirects are not followed: they fail the attempt, so that the client learns of the new URL.
    Callbacks to the built-in receiver differ from others in one thing: `inbox` gets them, and there
    is no connection.
    """

    def __init__(
        self,
        client: HttpClient,
        clock: Clock,
        default_timeout_ms: int,
        *,
        kept_answer_bytes: int = DEFAULT_KEPT_ANSWER_BYTES,
        signers: SignerView | None = None,
        routes: CallbackRoutes | None = None,
        inbox: CallbackInbox | None = None,
    ) -> None:
        """Without `routes` all callbacks take the client's own route, and without an `inbox` there
        is no built-in receiver."""
        self._client = client
        self._clock = clock
        self._default_timeout_ms = default_timeout_ms
        self._kept_answer_bytes = kept_answer_bytes
        self._signers = NoSigners() if signers is None else signers
        self._routes = routes
        self._inbox = inbox
        self.refused = 0
        """Callbacks that were not sent because their address is not allowed."""

    def check(self, callback: Callback) -> None:
        assert isinstance(callback, HttpCallback)
        try:
            target = _target_of(callback.url)
        except InvalidUrl as error:
            raise InvalidInput("callback.url", str(error)) from None
        if target.host == RECEIVER_HOST and self._inbox is not None:
            try:
                ReceiverAddress.parse(callback.url)
            except ValueError as error:
                raise InvalidInput("callback.url", str(error)) from None
        elif self._routes is not None:
            refusal = self._routes.refusal_at_create(target)
            if refusal is not None:
                raise CallbackRefused("callback.url", refusal)
        if callback.headers:
            check_headers(callback.headers, "latin-1", "ISO 8859-1")

    def endpoint_of(self, claim: Claim) -> str:
        assert isinstance(claim.callback, HttpCallback)
        target = _target_of(claim.callback.url)
        if target.host == RECEIVER_HOST and self._inbox is not None:
            # One who watches failures must not open the breaker of all receivers.
            return f"{target.origin}/{ReceiverAddress.parse(claim.callback.url).token}"
        return target.origin

    async def deliver(self, claim: Claim, may_send: MaySend) -> Outcome:
        callback = claim.callback
        assert isinstance(callback, HttpCallback)
        outcome = await self._attempt(claim, callback, may_send)
        if isinstance(outcome, Failed) and has_secrets(callback):
            # The endpoint may have repeated a header, and everybody may see the outcome.
            answer = outcome.answer
            return replace(
                outcome,
                error=without_echoes(outcome.error, callback),
                answer=None if answer is None else without_echoes(answer, callback),
            )
        return outcome

    async def _attempt(self, claim: Claim, callback: HttpCallback, may_send: MaySend) -> Outcome:
        sent_at = self._clock.now()
        try:
            target = _target_of(callback.url)
            header_lines = _header_lines(claim, callback.headers, sent_at, outgoing_traceparent())
            body = _body(claim, callback)
            signers = self._signers.signers(claim.namespace)
            if signers:
                seconds = sent_at // MICROSECONDS_PER_SECOND
                signature = signature_of(signers, claim.delivery_id, seconds, body or b"")
                header_lines += b"webhook-signature: %b\r\n" % signature
        except MemoryError:
            raise LocalShortage(MEMORY) from None
        timeout_seconds = (callback.timeout_ms or self._default_timeout_ms) / 1_000
        try:
            if target.host == RECEIVER_HOST and self._inbox is not None:
                answer = await self._receive(claim, callback, header_lines, body, timeout_seconds)
            else:
                answer = await self._client.post(
                    target,
                    header_lines,
                    body,
                    timeout_seconds,
                    # An interruption counts as an attempt, not as a failure. Its kept-alive
                    # connection was most likely dead, so the repeat gets a new one.
                    on_new_connection=claim.attempt - 1 > claim.failures,
                    may_send=may_send,
                    route=await self._route_of(claim, may_send),
                )
        except LacksResource as lacks:
            raise LocalShortage(lacks.resource) from None
        except StaleConnection as failure:
            return Interrupted(sent_at=sent_at, answered_at=self._clock.now(), error=str(failure))
        except RefusedAddress as refusal:
            self.refused += 1
            return Failed(
                sent_at=sent_at,
                answered_at=self._clock.now(),
                error=str(refusal),
                blames_endpoint=False,
                is_final=True,
            )
        except DeliveryFailure as failure:
            return Failed(sent_at=sent_at, answered_at=self._clock.now(), error=str(failure))
        outcome = _outcome(callback.protocol, answer, sent_at, self._clock.now())
        if isinstance(outcome, Failed) and self._kept_answer_bytes:
            if answer.location and answer.status in _REDIRECTS:
                leads_to = one_line(answer.location.decode(errors="replace"))
                outcome = replace(outcome, error=f"{outcome.error} (Location: {leads_to})")
            if answer.body:
                return _with_answer(outcome, answer, self._kept_answer_bytes)
        return outcome

    async def _receive(
        self,
        claim: Claim,
        callback: HttpCallback,
        header_lines: bytes,
        body: bytes | None,
        timeout_seconds: float,
    ) -> HttpAnswer:
        assert self._inbox is not None
        address = ReceiverAddress.parse(callback.url)
        try:
            async with asyncio.timeout(timeout_seconds):
                status, answer = await self._inbox.receive(
                    claim, address, header_lines, body or b""
                )
        except TimeoutError:
            raise TimedOut(timeout_seconds) from None
        return HttpAnswer(status, None, answer, body_truncated=False)

    async def _route_of(self, claim: Claim, may_send: MaySend) -> Route | None:
        if self._routes is None:
            return None
        route = self._routes.known_route(claim.namespace)
        if route is None:
            route = await self._routes.find_route(claim.namespace)
            if not may_send():
                raise NotSent
        return route

    async def close(self) -> None:
        await self._client.close()


def _header_lines(
    claim: Claim, headers: dict[str, str] | None, sent_at: Instant, traceparent: str | None
) -> bytes:
    """The client's headers over our defaults, then the headers that identify the delivery.

    A client's value for a header that frames the request or identifies the delivery is dropped,
    and so is its trace context if the attempt has one of its own.
    """
    seconds = sent_at // MICROSECONDS_PER_SECOND
    if traceparent is None:
        never_the_clients = _NEVER_THE_CLIENTS
        ours = _DELIVERY_LINES % (claim.delivery_id.encode(), seconds, claim.attempt)
    else:
        never_the_clients = _NEVER_WHEN_TRACED
        ids = claim.delivery_id.encode(), seconds, claim.attempt, traceparent.encode()
        ours = _TRACED_DELIVERY_LINES % ids
    if not headers:
        return _DEFAULT_LINES + ours
    chosen = dict(_DEFAULT_HEADERS)
    for name, value in headers.items():
        lower = name.lower()
        if lower in _DEFAULT_HEADERS:
            chosen[lower] = value
        elif lower not in never_the_clients:
            chosen[name] = value
    lines = "".join(f"{name}: {value.strip()}\r\n" for name, value in chosen.items())
    return lines.encode("latin-1") + ours


def _body(claim: Claim, callback: HttpCallback) -> bytes | None:
    payload = callback.payload
    if callback.protocol is CallbackProtocol.ANSWER:
        return format_request(claim, payload)
    return None if payload is UNSET else bytes(payload)


def _outcome(
    protocol: CallbackProtocol, answer: HttpAnswer, sent_at: Instant, answered_at: Instant
) -> Outcome:
    status = answer.status
    error = f"HTTP {status}"
    if status in _REDIRECTS:
        error += ", but redirects are not followed"
    retry_after_ms = _retry_after_ms(answer, answered_at)
    match protocol:
        case CallbackProtocol.STATUS:
            if 200 <= status < 300:
                return Completed(sent_at=sent_at, answered_at=answered_at)
        case CallbackProtocol.ANSWER:
            if status == 200:
                return read_answer(
                    answer, sent_at=sent_at, answered_at=answered_at, retry_after_ms=retry_after_ms
                )
            if 200 < status < 300:
                # Other protocols take this as success, so the error explains the difference.
                error += ', but only 200 with {"ok": true} completes the timer'
        case _ as unreachable:
            assert_never(unreachable)
    return Failed(
        sent_at=sent_at,
        answered_at=answered_at,
        error=error,
        retry_after_ms=retry_after_ms,
        blames_endpoint=status >= 500 or status in _ASKS_FOR_PATIENCE,
    )


def _with_answer(outcome: Failed, answer: HttpAnswer, kept_bytes: int) -> Failed:
    """The outcome with the beginning of the answer, and with its first words in the error."""
    # Cutting may leave a part of a character at the end, which is dropped.
    kept = answer.body[:kept_bytes].decode(errors="ignore")
    kept = kept.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if answer.status < 300 or kept.lstrip().startswith("<"):
        # The error says already what is wrong with a success, and markup explains little in a line.
        return replace(outcome, answer=kept or None)
    words = one_line(kept)
    error = f"{outcome.error}: {words}" if words else outcome.error
    return replace(outcome, answer=kept or None, error=error)


def _retry_after_ms(answer: HttpAnswer, now: Instant) -> int | None:
    """`Retry-After`, given in seconds or as a date; None if absent or unreadable."""
    text = answer.retry_after
    if text is None:
        return None
    if text.isdecimal() and len(text) < 10:
        return int(text) * 1_000
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        return None
    return max(0, (instant_of(moment) - now) // MICROSECONDS_PER_MS)
