"""The HTTP application: both APIs, the health check and the documents behind one ASGI callable."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from duetime.api.docs.routes import DOCUMENTS, Documents
from duetime.api.http.answers import Answer
from duetime.api.http.auditing import Auditing
from duetime.api.http.auth import Authentication
from duetime.api.http.body import answer_request, put_tracer
from duetime.api.http.body_budget import BodyBudget
from duetime.api.http.lifecycle import Lifecycle
from duetime.api.http.operation import Endpoint, bind
from duetime.api.metrics.measuring import measured
from duetime.api.metrics.metrics_app import Metrics, MetricsApp
from duetime.api.platform.errors import error_answer, no_such_path, refusal_answer
from duetime.api.platform.fast_create import FastCreate
from duetime.api.platform.health import EngineHealth, Health
from duetime.api.platform.path_endpoint import PathEndpoint
from duetime.api.platform.probes import ALIVE, Probes
from duetime.api.platform.public_keys import PUBLIC_KEYS, PublicKeys
from duetime.api.platform.routes import HEALTH, PLATFORM
from duetime.api.platform.timers import PlatformTimers
from duetime.api.v1.bulk_operations import OperationsV1
from duetime.api.v1.endpoints.endpoints import EndpointsV1
from duetime.api.v1.errors import code_of
from duetime.api.v1.explaining.explaining import ExplainingV1
from duetime.api.v1.namespaces import NamespacesV1
from duetime.api.v1.problems import ProblemsV1
from duetime.api.v1.router import PREFIX, RouterV1
from duetime.api.v1.routes.table import V1
from duetime.api.v1.security.audit_log import AuditLogV1
from duetime.api.v1.security.keys import KeysV1
from duetime.api.v1.security.secrets import SecretsV1
from duetime.api.v1.security.ui_links import UiLinksV1
from duetime.api.v1.timers import TimersV1
from duetime.ports.clock import Clock
from duetime.ports.store import TimerStore
from duetime.service.bulk.chosen import ChosenTimers
from duetime.service.bulk.operations import BulkOperations
from duetime.service.endpoints.endpoints import Endpoints
from duetime.service.explaining import Explaining
from duetime.service.namespaces import Namespaces
from duetime.service.redriving import Redriving
from duetime.service.reporting.objectives import Objectives
from duetime.service.reporting.problems import ProblemWatch
from duetime.service.restoring import Restoring
from duetime.service.searching.searching import Searching
from duetime.service.security.audit_log import AuditLog, Sampling
from duetime.service.security.key_ring import KeyRing
from duetime.service.security.keys import Keys
from duetime.service.security.sessions import Sessions
from duetime.service.security.webhook_secrets import WebhookSecrets
from duetime.service.timer_service import TimerService
from duetime.telemetry.metrics.requests import NO_OPERATION
from duetime.telemetry.request_tracer import RequestTracer


class Services(Struct, frozen=True, kw_only=True):
    """The services behind the APIs. Each API has a timer service with its own rules; `imports` is
    v1's for timers that another system accepted before, and `restoring` for those of a copy."""

    platform: TimerService
    v1: TimerService
    imports: TimerService
    restoring: Restoring
    redriving: Redriving
    explaining: Explaining
    searching: Searching
    operations: BulkOperations
    chosen: ChosenTimers
    namespaces: Namespaces
    webhook_secrets: WebhookSecrets
    audit_log: AuditLog
    keys: Keys
    sessions: Sessions
    objectives: Objectives
    endpoints: Endpoints


class ApiRules(Struct, frozen=True, kw_only=True):
    """The API's settings. `callback_timeout_ms` applies to timers that have no timeout."""

    max_body_bytes: int
    max_bodies_bytes: int
    callback_timeout_ms: int
    ping_timeout_seconds: float = 4.5


def create_app(
    *,
    services: Services,
    store: TimerStore,
    clock: Clock,
    health: Callable[[], EngineHealth],
    api_key: str | None,
    key_ring: KeyRing,
    rules: ApiRules,
    asyncapi: bytes,
    metrics: Metrics,
    audited_creates: Sampling | None = None,
    tracer: RequestTracer | None = None,
    problems: ProblemWatch | None = None,
) -> "App":
    """The application, ready to be served. Without an `api_key` every request is accepted, and the
    keys of the ring do not matter. `asyncapi` is the document that describes the bus. Without
    `audited_creates` the audit log has no creates, without a `tracer` requests have no spans, and
    without `problems` there are none."""
    lifecycle = Lifecycle()
    authentication = Authentication(api_key, key_ring, lifecycle)
    max_body_bytes = rules.max_body_bytes
    timers = TimersV1(
        services.v1,
        services.imports,
        services.restoring,
        services.redriving,
        services.namespaces,
        max_body_bytes=max_body_bytes,
        default_timeout_ms=rules.callback_timeout_ms,
    )
    operations = OperationsV1(services.operations, max_body_bytes=max_body_bytes)
    namespaces = NamespacesV1(
        services.namespaces,
        services.v1,
        services.operations,
        services.objectives,
        max_body_bytes=max_body_bytes,
    )
    secrets = SecretsV1(services.webhook_secrets, max_body_bytes=max_body_bytes)
    audit_log = AuditLogV1(services.audit_log)
    keys = KeysV1(services.keys, max_body_bytes=max_body_bytes)
    explaining = ExplainingV1(services.explaining)
    seen = EndpointsV1(services.endpoints, max_body_bytes=max_body_bytes)
    links = UiLinksV1(services.sessions)
    wrong = ProblemsV1(problems or ProblemWatch(clock, ()))
    handlers = (
        *(timers, explaining, operations, namespaces, secrets),
        *(seen, wrong, keys, audit_log, links),
    )
    auditing = Auditing(services.audit_log, audited_creates, clock, code_of)
    v1 = RouterV1(bind(V1, *handlers), authentication, auditing, clock, lifecycle)
    probes = Probes(store, clock, health, lifecycle, rules.ping_timeout_seconds)
    others = bind(
        (*PLATFORM, *HEALTH, *PUBLIC_KEYS, *DOCUMENTS),
        PlatformTimers(services.platform, max_body_bytes),
        probes,
        Health(store, clock, health, rules.ping_timeout_seconds),
        PublicKeys(services.webhook_secrets, lifecycle),
        Documents(asyncapi, clock),
    )
    fast_create = FastCreate(
        services.platform,
        authentication,
        lifecycle,
        max_body_bytes=max_body_bytes,
        audited=audited_creates,
        metrics=metrics.requests,
        tracer=tracer,
    )
    bodies = BodyBudget(rules.max_bodies_bytes)
    shown = (*others, metrics.api_endpoint())
    guards = (authentication, auditing)
    return App(shown, *guards, v1, fast_create, lifecycle, bodies, probes, metrics, tracer)


class App:
    """Paths without parameters are looked up, those of v1 go to its router, and Starlette's router
    matches the rest. A server may send plain creates to `fast_create` instead, and counts bodies
    by the budget `bodies`. `metrics` is the application of the metrics' own port."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        authentication: Authentication,
        auditing: Auditing,
        v1: RouterV1,
        fast_create: FastCreate,
        lifecycle: Lifecycle,
        bodies: BodyBudget,
        probes: Probes,
        metrics: Metrics,
        tracer: RequestTracer | None,
    ) -> None:
        self._tracer = tracer
        self.authentication = authentication
        self.auditing = auditing
        self._web: ASGIApp | None = None
        self.fast_create = fast_create
        self.bodies = bodies
        self.lifecycle = lifecycle
        self.operations = (*(each.operation for each in endpoints), *v1.operations)
        self._v1 = v1
        self._probes = probes
        self._requests = metrics.requests
        own_endpoint = PathEndpoint(authentication, auditing, lifecycle)
        self.metrics = MetricsApp(metrics, own_endpoint)
        paths: dict[str, PathEndpoint] = {}
        for endpoint in endpoints:
            of_path = PathEndpoint(authentication, auditing, lifecycle)
            paths.setdefault(endpoint.operation.path, of_path).add(endpoint)
        self._exact = {path: found for path, found in paths.items() if "{" not in path}
        self._router = Router(
            [Route(path, found) for path, found in paths.items() if path not in self._exact],
            redirect_slashes=False,
            default=_answer_unknown_path,
        )

    def add_web(self, web: ASGIApp) -> None:
        """Serve the Web UI at its paths."""
        self._web = web

    def drain(self) -> None:
        """The service was told to stop: it is not ready any more, but still answers. The server
        closes connections after their answer, which the fast path does not."""
        self.lifecycle.is_draining = True
        self.fast_create.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        if self._tracer is not None:
            put_tracer(scope, self._tracer)
        await measured(self._requests, self._route, scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        exact = self._exact.get(path)
        if exact is not None:
            await exact(scope, receive, send)
        elif _is_v1(path):
            await self._v1(scope, receive, send)
        elif self._web is not None and _is_web(path):
            await self._web(scope, receive, send)
        else:
            await self._router(scope, receive, send)

    def refusal(self, target: bytes, status: int, message: str) -> Answer:
        """The answer to a request that the server cannot pass on, in the format of the API that
        its target belongs to. The target may be cut off."""
        self._requests.of(NO_OPERATION).refused(status)
        if _is_v1(_path_of(target)):
            return self._v1.refusal(status, message)
        return refusal_answer(status, message)

    async def overload(self, target: bytes, message: str) -> Answer:
        """The answer to a request on a connection that is one too many. Probes are answered: a busy
        process works, and must neither be restarted nor lose the requests that it could serve."""
        match target.partition(b"?")[0]:
            case b"/livez":
                probed = ALIVE
            case b"/readyz":
                probed = await self._probes.readiness()
            case _:
                return self.refusal(target, 503, message)
        self._requests.of(NO_OPERATION).refused(probed.status)
        return probed


def _is_v1(path: str) -> bool:
    return path.startswith(f"{PREFIX}/") or path == PREFIX


def _is_web(path: str) -> bool:
    return path.startswith("/ui/") or path == "/ui"


def _path_of(target: bytes) -> str:
    """The path in a request's target, which may be any bytes."""
    if not target.startswith(b"/"):
        # A target may also be a whole URL.
        target = b"/" + target.partition(b"://")[2].partition(b"/")[2]
    return target.partition(b"?")[0].decode("latin-1")


async def _answer_unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await answer_request(_no_such_path, error_answer, scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1000})


async def _no_such_path(scope: Scope, receive: Receive) -> Answer:
    return no_such_path()
