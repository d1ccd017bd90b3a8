"""The event stream of a tab."""

from collections.abc import AsyncGenerator, Callable

from duetime.api.http.answers import Headers, StreamedAnswer
from duetime.api.http.caller import Caller
from duetime.domain.errors import InvalidInput, Unauthorized
from duetime.domain.instants import format_instant
from duetime.ports.clock import Clock
from duetime.web.endpoint import WebEndpoint, page
from duetime.web.live.hub import Hub, Subscription, message_of
from duetime.web.request import Request

BEAT_SECONDS = 15.0
"""Time after which a stream without news says that it lives, and notices a tab that is gone."""

_HEADERS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    # Proxies such as nginx would collect the events.
    (b"x-accel-buffering", b"no"),
)


class Stream:
    """`/ui/events?view=...` sends the changed blocks of one page, however many there are."""

    def __init__(self, hub: Hub, clock: Clock, is_live: Callable[[str], bool]) -> None:
        self._hub = hub
        self._clock = clock
        self._is_live = is_live

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (page("uiEvents", "/ui/events", self.open),)

    async def open(self, request: Request) -> StreamedAnswer:
        target = request.query.needed("view")
        if not self._is_live(target):
            raise InvalidInput("view", "must be a page that is live")
        tab = self._hub.subscribe(target, request.access)
        # A stream is open for hours, and must not take the place of a request for so long.
        request.caller.leave()
        return StreamedAnswer(200, self._events(tab, request.caller), _HEADERS)

    async def _events(self, tab: Subscription, caller: Caller) -> AsyncGenerator[bytes, None]:
        try:
            yield b"retry: 3000\n\n" + self._beat()
            while not tab.is_over:
                message = await tab.next(BEAT_SECONDS)
                caller.check_still_valid()
                yield self._beat() if message is None else message
        except Unauthorized:
            yield message_of("signed-out", None)
        finally:
            self._hub.unsubscribe(tab)

    def _beat(self) -> bytes:
        """The service's time, by which the tab says how far away an instant is."""
        return message_of("beat", format_instant(self._clock.now()))
