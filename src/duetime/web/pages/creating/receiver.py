"""The built-in receiver: one click sends a timer, and the page shows it arrive."""

from hashlib import sha256
from urllib.parse import urlencode

from msgspec import Raw, Struct

from duetime.api.app import Services
from duetime.api.http.answers import Answer
from duetime.domain.callback import (
    RECEIVER_HOST,
    CallbackProtocol,
    HttpCallback,
    ReceiverAddress,
    ReceiverAnswer,
)
from duetime.domain.errors import InvalidInput, NamespaceNotFound, TimerNotFound
from duetime.domain.instants import MICROSECONDS_PER_MS, Delay
from duetime.domain.keys import TimerKey
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer
from duetime.domain.wording import lateness, span
from duetime.service.create_requests import NewTimer
from duetime.service.trying.inbox import KEPT_SECONDS, MAX_CALLBACKS, Inbox, Received
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.errors import NoSuchPage
from duetime.web.pages.creating.create import visible_namespaces
from duetime.web.pages.timer_paths import timer_path
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Request

DELAY = Delay(5_000)
SHOWN_BODY_BYTES = 2_000
"""Part of a body that the page shows. It is sent again and again while the page is open."""

_TOKEN_CHARACTERS = 20
_PLAIN_TEXT = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"cache-control", b"no-store"),
)

RETRIES = RetryPolicy(
    max_retries=3,
    max_duration_ms=60_000,
    initial_interval_ms=2_000,
    max_interval_ms=8_000,
)
"""The policy of timers of this page: short waits, so that people see the retries."""

ANSWERS = {
    ReceiverAnswer.OK: "200: it succeeds",
    ReceiverAnswer.FAIL_TWICE: "500 twice, then 200: it is retried",
    ReceiverAnswer.FAIL: "500 every time: it fails in the end",
    ReceiverAnswer.SLOW: "200 after 5 s: it is slow",
    ReceiverAnswer.GONE: "410: the place is gone",
}


class Arrival(Struct, frozen=True):
    """A callback that arrived, as the page shows it."""

    received: Received
    path: str
    lateness: str
    body: str
    """The beginning of the body."""
    body_is_longer: bool


class Try(Struct, frozen=True):
    """An attempt of the timer that the page follows. `is_elsewhere` if another process received
    it."""

    attempt: Attempt
    lateness: str
    is_elsewhere: bool


class Followed(Struct, frozen=True):
    """The timer that the page follows, as the store has it."""

    timer: Timer
    path: str
    tries: list[Try]

    @property
    def retried_words(self) -> str | None:
        """The time from the due instant to the last attempt; None if there was only one."""
        last = self.tries[-1].attempt
        if len(self.tries) == 1 or last.sent_at is None:
            return None
        after_ms = (last.sent_at - self.timer.execute_at) / MICROSECONDS_PER_MS
        return f"{span(after_ms)} after its instant"


class ReceiverPage:
    def __init__(self, services: Services, inbox: Inbox) -> None:
        self._timers = services.v1
        self._namespaces = services.namespaces
        self._inbox = inbox

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiReceiver", "/ui/receiver", self.lead),
            page("uiReceiverOf", "/ui/receiver/{token}", self.show, may_be_live=True),
            page("uiReceivedBody", "/ui/receiver/{token}/bodies/{number}", self.show_body),
            action(
                "uiSendToReceiver", "/ui/receiver/{token}/send", self.send, audit="timer.create"
            ),
        )

    async def lead(self, request: Request) -> Redirect:
        """Each browser has a receiver of its own, whose name nobody can guess."""
        digest = sha256(b"duetime receiver " + request.csrf.encode()).hexdigest()
        return Redirect(f"/ui/receiver/{digest[:_TOKEN_CHARACTERS]}", request.message)

    async def show(self, request: Request) -> View:
        address = _address_of(request)
        received = self._inbox.watch(address.token, request.access)
        return View(
            template="pages/receiver.html",
            title="Receiver",
            values={
                "token": address.token,
                "url": address.url,
                "answers": {each.value: words for each, words in ANSWERS.items()},
                "answer": request.query.get("answer") or ReceiverAnswer.OK.value,
                "namespaces": visible_namespaces(self._namespaces, request.access)
                or [request.access.home],
                "namespace": request.query.get("namespace") or request.access.home,
                "followed": await self._followed(request, received),
                "arrivals": [_arrival_of(each) for each in received],
                "kept_callbacks": MAX_CALLBACKS,
                "kept_minutes": round(KEPT_SECONDS / 60),
            },
            live=("state", "arrived"),
        )

    async def show_body(self, request: Request) -> Answer:
        """As much of a body as was kept."""
        number = request.part("number")
        for received in self._inbox.watch(_address_of(request).token, request.access):
            if str(received.number) == number:
                return Answer(200, received.body, _PLAIN_TEXT)
        raise NoSuchPage

    async def send(self, request: Request) -> Redirect:
        token = _address_of(request).token
        answer = request.form.get("answer") or ReceiverAnswer.OK.value
        if answer not in {each.value for each in ANSWERS}:
            raise InvalidInput("answer", f"must be one of {', '.join(map(str, ANSWERS))}")
        namespace = request.form.get("namespace") or request.access.home
        request.caller.reach(namespace)
        result = await self._timers.create(
            NewTimer(
                namespace=namespace,
                execute_at=DELAY,
                callback=HttpCallback(
                    url=ReceiverAddress(token, ReceiverAnswer(answer)).url,
                    payload=Raw(b'{"hello":"from Duetime"}'),
                    protocol=CallbackProtocol.STATUS,
                    timeout_ms=10_000,
                ),
                retry_policy=RETRIES,
            )
        )
        request.caller.reach_timer(result.timer.key)
        query = {"namespace": namespace, "timer": result.timer.key.id, "answer": answer}
        return Redirect(f"/ui/receiver/{token}?{urlencode(query)}")

    async def _followed(self, request: Request, received: list[Received]) -> Followed | None:
        # A namespace and an id may begin or end with space.
        id = request.query.text("timer")
        if not id:
            return None
        key = TimerKey(request.query.text("namespace") or request.access.home, id)
        try:
            timer = await self._timers.get(request.caller.reach_timer(key))
        except (TimerNotFound, NamespaceNotFound):
            return None
        here = {each.attempt for each in received if each.key == key}
        tries = [Try(each, _lateness_of(each), each.number not in here) for each in timer.attempts]
        return Followed(timer, timer_path(key), tries)


def _address_of(request: Request) -> ReceiverAddress:
    try:
        return ReceiverAddress.parse(f"https://{RECEIVER_HOST}/{request.part('token')}")
    except ValueError:
        raise NoSuchPage from None


def _lateness_of(attempt: Attempt) -> str:
    if attempt.sent_at is None:
        return lateness(None)
    return lateness((attempt.sent_at - attempt.due_at) / MICROSECONDS_PER_MS)


def _arrival_of(received: Received) -> Arrival:
    return Arrival(
        received=received,
        path=timer_path(received.key),
        lateness=lateness(received.lateness_ms),
        body=received.body[:SHOWN_BODY_BYTES].decode(errors="replace"),
        body_is_longer=received.body_bytes > SHOWN_BODY_BYTES,
    )
