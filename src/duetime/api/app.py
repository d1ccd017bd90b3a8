"""The HTTP application: which path leads where, and what happens when something goes wrong."""

from collections.abc import Awaitable, Callable

from msgspec import Struct
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from duetime.api.docs.page import docs_answer
from duetime.api.http.answers import Answer
from duetime.api.http.auth import ApiKeyGuard
from duetime.api.http.body import BodyWatch, ClientGone
from duetime.api.http.errors import error_answer, method_not_allowed, no_such_path
from duetime.api.openapi.document import openapi_answer
from duetime.api.platform.fast_create import ExpressCreate
from duetime.api.platform.health import EngineHealth, Health
from duetime.api.platform.router import Platform
from duetime.api.v1.endpoints import EndpointsV1, NodeEndpoints
from duetime.api.v1.namespaces import NamespacesV1
from duetime.api.v1.router import DoorV1
from duetime.api.v1.timers import TimersV1
from duetime.domain.callback import DEFAULT_TIMEOUT_MS
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore
from duetime.service.namespaces import Namespaces
from duetime.service.redriving import Redriving
from duetime.service.timer_service import TimerService

Handler = Callable[[Scope, Receive], Awaitable[Answer]]


class Services(Struct, frozen=True, kw_only=True):
    """What the doors call. Each door has a timer service with its own rules; `imports` is v1's
    for timers that were accepted elsewhere before."""

    platform: TimerService
    v1: TimerService
    imports: TimerService
    redriving: Redriving
    namespaces: Namespaces


class ApiRules(Struct, frozen=True, kw_only=True):
    """What an operator may set about the API. `callback_timeout_ms` is that of timers which
    have none of their own."""

    max_body_bytes: int = 1_048_576
    callback_timeout_ms: int = DEFAULT_TIMEOUT_MS
    ping_timeout_seconds: float = 4.5


def create_app(
    *,
    services: Services,
    store: TimerStore,
    clock: Clock,
    health: Callable[[], EngineHealth],
    endpoints: Callable[[], NodeEndpoints],
    api_key: str | None,
    rules: ApiRules,
    asyncapi: bytes,
) -> ASGIApp:
    """The application, ready to be served. Without an `api_key` everyone is let in. `asyncapi` is
    what describes the bus, of which nothing else is known here."""
    guard = ApiKeyGuard(api_key)
    service = services.platform
    platform = Platform(service, guard, rules.max_body_bytes)
    express = ExpressCreate(service, guard, max_body_bytes=rules.max_body_bytes)
    health_check = Health(store, clock, health, rules.ping_timeout_seconds)

    async def healthz(scope: Scope, receive: Receive) -> Answer:
        return await health_check.check()

    async def openapi(scope: Scope, receive: Receive) -> Answer:
        return openapi_answer()

    async def bus_description(scope: Scope, receive: Receive) -> Answer:
        return Answer(200, asyncapi)

    async def docs(scope: Scope, receive: Receive) -> Answer:
        return docs_answer(scope, clock.now())

    async def home(scope: Scope, receive: Receive) -> Answer:
        return Answer(307, b"", ((b"location", b"/docs"),))

    routes = [
        _route("/timers", GET=platform.page, POST=platform.create),
        _route("/timers/{id}", GET=platform.get, PUT=platform.update, DELETE=platform.cancel),
        _route("/healthz", GET=healthz),
        _route("/openapi.json", GET=openapi),
        _route("/asyncapi.json", GET=bus_description),
        _route("/docs", GET=docs),
        _route("/", GET=home),
    ]
    v1 = DoorV1(
        TimersV1(
            services.v1,
            services.imports,
            services.redriving,
            services.namespaces,
            max_body_bytes=rules.max_body_bytes,
            default_timeout_ms=rules.callback_timeout_ms,
        ),
        NamespacesV1(services.namespaces, services.v1, max_body_bytes=rules.max_body_bytes),
        EndpointsV1(endpoints),
        guard,
        clock,
    )
    return App(routes, create=platform.create, v1=v1, express=express)


class App:
    """The platform's creates and the v1 API go straight to their handlers, everything else
    through Starlette's router.

    A handler makes a whole answer before any of it is sent, so whatever it raises can still
    become an error answer: nothing is ever half sent, and no traceback leaves the process.
    """

    def __init__(
        self, routes: list[Route], *, create: Handler, v1: ASGIApp, express: ExpressCreate
    ) -> None:
        self._router = Router(routes, redirect_slashes=False, default=_answer_unknown_path)
        self._create = create
        self._v1 = v1
        self.fast_create = express

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._router(scope, receive, send)
        elif scope["method"] == "POST" and scope["path"] == "/timers":
            await _answer(self._create, scope, receive, send)
        elif scope["path"].startswith("/api/v1/") or scope["path"] == "/api/v1":
            await self._v1(scope, receive, send)
        else:
            await self._router(scope, receive, send)


async def _answer(handler: Handler, scope: Scope, receive: Receive, send: Send) -> None:
    watch = BodyWatch(scope, receive)
    try:
        answer = await handler(scope, watch.receive)
    except ClientGone:
        return
    except Exception as error:
        answer = error_answer(error, scope)
    await watch.ending(answer).send(send)


async def _answer_unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await no_such_path().send(send)
    else:
        await send({"type": "websocket.close", "code": 1000})


class _Methods:
    """One path's handlers, by method. To Starlette's route an object is an ASGI app."""

    def __init__(self, handlers: dict[str, Handler]) -> None:
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = self._handlers.get(scope["method"])
        if handler is None:
            await method_not_allowed(self._handlers).send(send)
        else:
            await _answer(handler, scope, receive, send)


def _route(path: str, **handlers: Handler) -> Route:
    if "GET" in handlers:
        handlers["HEAD"] = handlers["GET"]
    return Route(path, _Methods(handlers))
