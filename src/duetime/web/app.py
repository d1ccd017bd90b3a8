"""The application of the UI: finds the page or action of a request, and answers it."""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import Protocol
from urllib.parse import quote, urlsplit

from starlette.types import Receive, Scope, Send

from duetime.api.http.answers import JSON_TYPE, Answer, AnyAnswer, Headers, StreamedAnswer
from duetime.api.http.auditing import Auditing
from duetime.api.http.body import answer_request, read_body
from duetime.api.http.caller import Caller, caller_if_known
from duetime.api.http.decoding import InvalidRequest
from duetime.api.http.host import base_url_of
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.http.operation import PathTable, Route, asked_for, note_operation
from duetime.api.metrics.negotiation import accepts_gzip
from duetime.domain.errors import Unauthorized
from duetime.domain.security.access import UNCHECKED
from duetime.ports.clock import Clock
from duetime.web.cookies import (
    BROWSER,
    MESSAGE,
    Cookies,
    SetCookie,
    browser_of,
    cookies_of,
    csrf_token,
    new_browser,
    preferences_of,
    set_cookie,
)
from duetime.web.endpoint import WebEndpoint
from duetime.web.errors import NoSuchPage, error_json, error_view, log_error, status_of
from duetime.web.guard import CSRF_FIELD, CSRF_HEADER, PAGE_HEADERS, check_origin, check_token
from duetime.web.rendering.renderer import Renderer
from duetime.web.rendering.view import Redirect, Result, View
from duetime.web.request import Fields, Request
from duetime.web.static_files import PREFIX as STATIC
from duetime.web.static_files import static_answer

PREFIX = "/ui"
SIGN_IN = "/ui/sign-in"
UNDONE_FIELD = "undone"
"""Tells the page for the sign-in that a form was sent in vain."""

_EVENTS_TYPE = b"text/event-stream"
_SIGNED_OUT = Answer(
    200,
    b"event: signed-out\ndata: null\n\n",
    ((b"content-type", _EVENTS_TYPE), (b"cache-control", b"no-store")),
)

MESSAGE_SECONDS = 20

MAX_BYTES_OF_STRANGERS = 16_384
"""Size of a form from somebody who has not shown a key yet."""

QUICK_BYTES = 8_192
"""Size of a form that is read within a millisecond."""

MAX_MESSAGE_CHARACTERS = 500


class Admission(Protocol):
    """Tells who sends a request."""

    async def admit(self, scope: Scope, operation: Route) -> Caller:
        """As `Authentication.admit`. Raises `Unauthorized` where somebody has to sign in."""
        ...


class WebApp:
    """Every request is admitted first. One that changes something has to come from a form of our
    own. Errors are pages, or JSON for scripts."""

    def __init__(
        self,
        endpoints: Iterable[WebEndpoint],
        admission: Admission,
        auditing: Auditing,
        lifecycle: Lifecycle,
        clock: Clock,
        renderer: Renderer,
        *,
        max_body_bytes: int,
    ) -> None:
        self._paths = PathTable(endpoints)
        self._admission = admission
        self._auditing = auditing
        self._lifecycle = lifecycle
        self._clock = clock
        self._renderer = renderer
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer_request(self._answer, _last_resort, scope, receive, send)

    def find_live(self, target: str) -> tuple[WebEndpoint, Scope] | None:
        """The page at a target, if it may be live, with a scope that has the parameters of its
        path."""
        path, _, query = target.partition("?")
        scope: Scope = {"method": "GET", "query_string": query.encode("latin-1", "replace")}
        endpoint = self._paths.methods_of(path.encode(), scope, "GET").get("GET")
        return None if endpoint is None or not endpoint.may_be_live else (endpoint, scope)

    async def _answer(self, scope: Scope, receive: Receive) -> AnyAnswer:
        if scope["path"].startswith(STATIC):
            file = static_answer(scope["path"], is_gzip=accepts_gzip(scope["headers"]))
            if file is not None:
                return file
        cookies = cookies_of(scope)
        visit = _Visit(scope, cookies)
        try:
            result, request = await self._result(visit, receive)
            if isinstance(result, View):
                return await self._page(visit, result, request)
        except Unauthorized as error:
            return self._lead_to_sign_in(visit, error)
        except Exception as error:
            log_error(error, scope)
            if visit.wants_json:
                return error_json(error)
            view = visit.refused or error_view(error)
            return await self._page(visit, view, visit.request or self._known_caller(visit))
        if isinstance(result, Redirect):
            return visit.redirected(result)
        if isinstance(result, StreamedAnswer):
            return result._replace(chunks=_while_there(result.chunks, receive))
        return result

    async def _result(self, visit: "_Visit", receive: Receive) -> tuple[Result, Request]:
        scope = visit.scope
        path, method = asked_for(scope)
        methods = self._paths.methods_of(path, scope, method)
        endpoint = methods.get(method)
        if endpoint is None:
            raise NoSuchPage
        note_operation(scope, endpoint.operation)
        handling = self._handle(endpoint, visit, receive)
        if endpoint.operation.audit is None:
            return await handling
        return await self._auditing.recorded(endpoint.operation, scope, handling)

    async def _handle(
        self, endpoint: WebEndpoint, visit: "_Visit", receive: Receive
    ) -> tuple[Result, Request]:
        route, scope = endpoint.operation, visit.scope
        caller = Caller(UNCHECKED)
        if route.method == "POST":
            check_origin(scope)
        if route.needs_key:
            caller = await self._admission.admit(scope, route)
        if route.needs_store:
            self._lifecycle.check_started()
        request = visit.request = self._request(visit, caller, Fields())
        if route.method == "POST":
            most_bytes = self._max_body_bytes if route.needs_key else MAX_BYTES_OF_STRANGERS
            form = await _form_in(await read_body(scope, receive, most_bytes))
            check_token(visit.browser, visit.header(CSRF_HEADER) or form.get(CSRF_FIELD))
            request = visit.request = self._request(visit, caller, form)
        result = await endpoint.handle(request)
        if isinstance(result, View) and result.refusal is not None:
            visit.refused = result
            raise result.refusal
        return result, request

    def _request(self, visit: "_Visit", caller: Caller, form: Fields) -> Request:
        scope = visit.scope
        query: bytes = scope["query_string"]
        return Request(
            caller=caller,
            scope=scope,
            target=visit.target,
            path=scope.get("path_params", {}),
            query=Fields.read(query, "query"),
            now=self._clock.now(),
            form=form,
            csrf=csrf_token(visit.token_source),
            base_url=base_url_of(scope),
            preferences=preferences_of(visit.cookies),
            message=visit.message,
            wants_json=visit.wants_json,
        )

    def _known_caller(self, visit: "_Visit") -> Request | None:
        """For the frame of a refusal: who is known but may not do this still has a menu."""
        caller = caller_if_known(visit.scope)
        if caller is None:
            return None
        with suppress(InvalidRequest):
            return self._request(visit, caller, Fields())
        return None

    async def _page(self, visit: "_Visit", view: View, request: Request | None) -> Answer:
        content = await self._renderer.page(view, request)
        status = view.status if view.refusal is None else status_of(view.refusal)
        return Answer(status, content, (*PAGE_HEADERS, *visit.new_cookies()))

    def _lead_to_sign_in(self, visit: "_Visit", error: Unauthorized) -> Answer:
        if visit.wants_json:
            return error_json(error)
        if visit.header_bytes(b"accept") == _EVENTS_TYPE:
            # The script of an open page decides: somebody may be typing there.
            return _SIGNED_OUT
        if visit.scope["method"] in ("GET", "HEAD"):
            return visit.redirected(Redirect(f"{SIGN_IN}?next={quote(visit.target, safe='')}"))
        # Afterwards the page with the form is shown again.
        page = urlsplit(visit.header(b"referer") or "")
        target = f"{page.path}?{page.query}" if page.query else page.path
        return visit.redirected(
            Redirect(f"{SIGN_IN}?next={quote(target, safe='')}&{UNDONE_FIELD}=1")
        )


class _Visit:
    """A request on its way, with the cookies that the answer sets. `request` is that of the
    handler, once the caller is known. `refused` is the handler's own page for its error."""

    def __init__(self, scope: Scope, cookies: Cookies) -> None:
        self.scope = scope
        self.cookies = cookies
        self.browser = browser_of(cookies)
        self.token_source = self.browser or new_browser()
        self.request: Request | None = None
        self.refused: View | None = None
        self.wants_json = JSON_TYPE[0][1] in self.header_bytes(b"accept")
        self.message = _message_in(cookies)

    @property
    def target(self) -> str:
        path = asked_for(self.scope)[0].decode("latin-1")
        query = self.scope["query_string"].decode("latin-1")
        return f"{path}?{query}" if query else path

    def header_bytes(self, name: bytes) -> bytes:
        return next((value for given, value in self.scope["headers"] if given == name), b"")

    def header(self, name: bytes) -> str | None:
        return self.header_bytes(name).decode("latin-1") or None

    def new_cookies(self) -> Sequence[SetCookie]:
        """The cookies that a page sets: the browser's name if it has none. A message is shown."""
        given: list[SetCookie] = []
        if self.browser is None:
            given.append(set_cookie(self.scope, BROWSER, self.token_source))
        if self.message is not None:
            given.append(set_cookie(self.scope, MESSAGE, "", seconds=0))
        return given

    def redirected(self, redirect: Redirect) -> Answer:
        headers: Headers = (
            (b"location", redirect.location.encode("ascii", "replace")),
            (b"cache-control", b"no-store"),
            *redirect.cookies,
        )
        if redirect.message is not None:
            text = redirect.message[:MAX_MESSAGE_CHARACTERS].encode()
            value = urlsafe_b64encode(text).decode()
            headers += (set_cookie(self.scope, MESSAGE, value, seconds=MESSAGE_SECONDS),)
        return Answer(303, b"", headers)


def _message_in(cookies: Cookies) -> str | None:
    """The message is ours, but a cookie may be anything."""
    given = cookies.get(MESSAGE)
    if not given:
        return None
    with suppress(ValueError):
        return urlsafe_b64decode(given).decode()[:MAX_MESSAGE_CHARACTERS]
    return None


async def _form_in(body: bytes) -> Fields:
    """The fields of a form. A large one is read beside the event loop, which it would hold up."""
    if len(body) <= QUICK_BYTES:
        return Fields.read(body, "form")
    return await asyncio.to_thread(Fields.read, body, "form")


async def _while_there(
    chunks: AsyncGenerator[bytes, None], receive: Receive
) -> AsyncGenerator[bytes, None]:
    """The chunks, until the client is gone: nobody else would notice. One that takes long to make
    its next chunk yields empty ones meanwhile, which are not sent."""
    gone = asyncio.ensure_future(_client_gone(receive))
    try:
        async with aclosing(chunks) as given:
            async for chunk in given:
                if gone.done():
                    return
                if chunk:
                    yield chunk
    finally:
        gone.cancel()


async def _client_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _last_resort(error: Exception, scope: Scope) -> Answer:
    """The page of the error could not be made either."""
    log_error(error, scope)
    return error_json(error)
