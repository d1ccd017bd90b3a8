"""A client that calls the application in-process with exact bytes."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace
from starlette.types import ASGIApp, Message

from duetime.api.app import ApiRules, Services, create_app
from duetime.api.metrics.metrics_app import Metrics
from duetime.api.platform.health import EngineHealth
from duetime.delivery.endpoint_names import endpoint_named
from duetime.delivery.signing import make_signer
from duetime.domain.defaults import (
    DEFAULT_CALLBACK_TIMEOUT_MS,
    DEFAULT_MAX_BODIES_BYTES,
    DEFAULT_MAX_BODY_BYTES,
)
from duetime.domain.timer import TimerStatus
from duetime.engine.objective_counts import ObjectiveCounts
from duetime.ports.endpoints import (
    EndpointFigures,
    EndpointPause,
    EndpointStatus,
    FiringReport,
    idle_endpoint,
)
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer
from duetime.service.bulk.chosen import ChosenTimers
from duetime.service.bulk.operations import BulkOperations
from duetime.service.bulk.runner import BulkRunner
from duetime.service.endpoints.endpoints import Endpoints
from duetime.service.explaining import Explaining
from duetime.service.redriving import Redriving
from duetime.service.reporting.objectives import Objectives
from duetime.service.reporting.problems import Finding, ProblemWatch
from duetime.service.searching.searching import Searching
from duetime.service.security.audit_log import AuditLog, Sampling
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.key_ring import KeyLimits, KeyRing
from duetime.service.security.keys import Keys
from duetime.service.security.known_signers import KnownSigners
from duetime.service.security.sessions import Sessions
from duetime.service.security.webhook_secrets import WebhookSecrets
from duetime.service.turns import Turns
from duetime.service.validation import TimerRules
from duetime.stores.memory import MemoryStore
from duetime.telemetry.metrics.exposition import Format
from duetime.telemetry.metrics.recording import LabelValues
from duetime.telemetry.metrics.registry import Registry
from duetime.telemetry.metrics.requests import RequestMetrics
from duetime.telemetry.request_tracer import RequestTracer
from duetime.testing import VirtualClock
from tests.unit.service.service_bench import EVERY_SHARD, ServiceBench, timer_rules

API_KEY = "a-key-of-at-least-thirty-two-characters"
IN_TEN_SECONDS = "2030-01-01T00:00:10Z"

RawHeaders = list[tuple[bytes, bytes]]


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes
    set_cookies: Sequence[str] = ()

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.content)

    @property
    def data(self) -> Any:
        return self.json["data"]

    @property
    def error(self) -> tuple[int, int, str]:
        """Status, code and message of an error answer, whose form is checked."""
        body = self.json
        assert list(body) == ["code", "message", "data"]
        assert body["data"] is None
        assert self.headers["content-type"] == "application/json"
        return self.status, body["code"], body["message"]


async def call(
    app: ASGIApp,
    method: str,
    path: str,
    chunks: Iterable[bytes] | AsyncIterable[bytes] = (b"",),
    headers: RawHeaders | None = None,
    address: str | None = None,
) -> Reply:
    """`chunks` after the point where the application stops reading are never requested, except for
    one that is read ahead."""
    path, _, query = path.partition("?")
    pending = _each(chunks)
    upcoming = await anext(pending, None)
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal upcoming
        if upcoming is None:
            return {"type": "http.disconnect"}
        chunk, upcoming = upcoming, await anext(pending, None)
        return {"type": "http.request", "body": chunk, "more_body": upcoming is not None}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode("utf-8", "surrogateescape"),
        "headers": headers or [],
        "scheme": "http",
        "root_path": "",
        "client": None if address is None else (address, 40_000),
    }
    await app(scope, receive, send)
    start, body = sent
    names = {name.decode(): value.decode() for name, value in start["headers"]}
    assert names["content-length"] == str(len(body["body"]))
    cookies = [value.decode() for name, value in start["headers"] if name == b"set-cookie"]
    return Reply(start["status"], names, body["body"], cookies)


async def _each(chunks: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(chunks, AsyncIterable):
        async for chunk in chunks:
            yield chunk
    else:
        for chunk in chunks:
            yield chunk


def make_api_rules(**changes: object) -> ApiRules:
    rules = ApiRules(
        max_body_bytes=DEFAULT_MAX_BODY_BYTES,
        max_bodies_bytes=DEFAULT_MAX_BODIES_BYTES,
        callback_timeout_ms=DEFAULT_CALLBACK_TIMEOUT_MS,
    )
    return replace(rules, **changes)


class Reporter:
    """Implements the reporter of endpoints with what a test sets, and keeps the pauses."""

    node = "node-1"

    def __init__(self) -> None:
        self.statuses: list[EndpointStatus] = []
        self.figures: dict[str, EndpointFigures] = {}
        self.pauses: Mapping[str, EndpointPause] = {}

    def endpoint_names(self) -> Sequence[str]:
        known = [each.endpoint for each in self.statuses]
        return list(dict.fromkeys([*known, *self.figures, *self.pauses]))

    def troubled_endpoints(self, most: int) -> list[EndpointStatus]:
        statuses = map(self.status_of, self.endpoint_names())
        return [each for each in statuses if each.pause or each.consecutive_failures][:most]

    def status_of(self, endpoint: str) -> EndpointStatus:
        known = {each.endpoint: each for each in self.statuses}
        status = known.get(endpoint) or idle_endpoint(endpoint)
        pause = self.pauses.get(endpoint) or status.pause
        return replace(status, figures=self.figures.get(endpoint), pause=pause)

    def set_pauses(self, pauses: Mapping[str, EndpointPause]) -> None:
        self.pauses = pauses


class ApiBench(ServiceBench):
    """The API over a service on a memory store."""

    def __init__(
        self,
        store: MemoryStore | None = None,
        rules: TimerRules | None = None,
        api_rules: ApiRules | None = None,
        api_key: str | None = API_KEY,
        clock: VirtualClock | None = None,
        webhook_secrets: Sequence[str] = (),
        audited_creates: Sampling | None = None,
        key_limits: KeyLimits | None = None,
        metrics_public: bool = False,
        metrics_own_port: bool = False,
        tracer: RequestTracer | None = None,
    ) -> None:
        super().__init__(store, rules, clock)
        self.requests = RequestMetrics(self.clock.monotonic)
        self.registry = Registry()
        self.registry.add(self.requests.recorders())
        self.credential_watch = CredentialWatch(self.store.security, self.clock)
        self.key_ring = KeyRing(self.credential_watch, self.clock, key_limits)
        self.sessions = Sessions(
            self.store.security, self.credential_watch, self.key_ring, self.clock, api_key
        )
        self.engine = EngineHealth(running=True, shards_owned=16, lateness_ms=0.5, in_flight=2)
        self.reporter = Reporter()
        self.report = FiringReport(node="node-1", owns_shard=True, owner="node-1")
        self.signers = KnownSigners(self.clock, make_signer, configured=webhook_secrets)
        self.credential_watch.subscribe(self.signers.see)
        secrets = WebhookSecrets(
            self.store.security, self.credential_watch, self.signers, self.namespaces, self.clock
        )
        self.bulk_runner = BulkRunner(
            self.store,
            self.store,
            self.clock,
            self.wakeups,
            self.namespaces,
            EVERY_SHARD,
            forget_secrets=secrets.forget,
        )
        self.audit_log = AuditLog(self.store.security, self.clock)
        labels = LabelValues(100)
        self.lateness_counts = ObjectiveCounts(self.namespaces, labels)
        self.objectives = Objectives(
            self.store.lateness_ledger,
            self.clock,
            lambda: self.known.objectives,
            self.lateness_counts,
            labels,
            self.store.clock_believed_at,
        )
        v1_rules = timer_rules(min_delay_ms=0, default_retries=True)
        redriving = Redriving(self.store, self.clock, self.wakeups, self.namespaces)
        self.services = Services(
            platform=self.service,
            v1=self.service_with(v1_rules),
            imports=self.service_with(replace(v1_rules, past_is_due=True)),
            restoring=self.restoring,
            redriving=redriving,
            explaining=Explaining(
                self.service_with(v1_rules),
                self.clock,
                lambda timer, now: self.report,
            ),
            searching=Searching(
                self.store.searches, CallbackSealer(Sealer(())), self.clock, Turns(self.clock)
            ),
            operations=BulkOperations(
                self.store,
                self.store,
                self.clock,
                self.namespaces,
                EVERY_SHARD,
                self.bulk_runner.wake,
            ),
            chosen=ChosenTimers(
                self.store,
                self.clock,
                self.wakeups,
                self.namespaces,
                self.service_with(v1_rules),
                redriving,
            ),
            namespaces=self.namespaces,
            webhook_secrets=secrets,
            audit_log=self.audit_log,
            keys=Keys(self.store.security, self.credential_watch, self.key_ring, self.clock),
            sessions=self.sessions,
            objectives=self.objectives,
            endpoints=Endpoints(
                self.store.endpoint_pauses,
                self.reporter,
                self.clock,
                Turns(self.clock),
                endpoint_named,
            ),
        )
        self.findings: list[Finding] = []
        self.problems = ProblemWatch(self.clock, [lambda: self.findings])
        self.app = create_app(
            services=self.services,
            problems=self.problems,
            store=self.store,
            clock=self.clock,
            health=lambda: self.engine,
            api_key=api_key,
            key_ring=self.key_ring,
            rules=api_rules or make_api_rules(),
            asyncapi=b'{"asyncapi": "3.0.0"}',
            audited_creates=audited_creates,
            tracer=tracer,
            metrics=Metrics(
                scrape=self.scrape,
                requests=self.requests,
                public=metrics_public,
                own_port=metrics_own_port,
            ),
        )

    async def request(
        self,
        method: str,
        path: str,
        body: object = b"",
        key: str = API_KEY,
        address: str | None = None,
    ) -> Reply:
        """With the key. A body that is not bytes is sent as JSON."""
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = [
            (b"x-api-key", key.encode()),
            (b"content-length", b"%d" % len(content)),
        ]
        return await call(self.app, method, path, [content], headers, address)

    async def scrape(self, form: Format) -> str:
        return self.registry.render(form)

    async def issue_key(self, *roles: str, namespaces: Sequence[str] = ("*",), **more: Any) -> str:
        """The text of a new key."""
        body = {"name": "a key", "roles": roles, "namespaces": namespaces, **more}
        reply = await self.request("POST", "/api/v1/keys", body)
        assert reply.status == 201, reply.content
        text: str = reply.json["key"]
        return text

    async def create(self, **changes: object) -> Reply:
        return await self.request("POST", "/timers", create_body(**changes))

    async def timers_stored(self) -> dict[TimerStatus, int]:
        return await self.store.counts()


def create_body(**changes: object) -> dict[str, object]:
    callback = {"type": "http", "url": "https://example.com/due"}
    return {"execute_at": IN_TEN_SECONDS, "callback": callback, **changes}
