"""The metrics as an application of their own, for their own port."""

from msgspec import Struct
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from duetime.api.http.answers import Answer
from duetime.api.http.body import answer_request
from duetime.api.http.operation import Endpoint, bind
from duetime.api.metrics.measuring import measured
from duetime.api.metrics.routes import METRICS, PATH, Scrape, ScrapeAnswers
from duetime.api.platform.envelope import Code, answer
from duetime.api.platform.errors import error_answer, refusal_answer
from duetime.api.platform.path_endpoint import PathEndpoint
from duetime.telemetry.metrics.requests import NO_OPERATION, RequestMetrics


class Metrics(Struct, frozen=True, kw_only=True):
    """The metrics, and who may read them where. `requests` counts those to the API. With an
    `own_port` they are there, and not on the API's port."""

    scrape: Scrape
    requests: RequestMetrics
    public: bool = False
    own_port: bool = False

    def endpoint(self) -> Endpoint:
        (endpoint,) = bind(METRICS, ScrapeAnswers(self.scrape))
        needs_key = endpoint.operation.needs_key and not self.public
        return endpoint._replace(operation=replace(endpoint.operation, needs_key=needs_key))

    def api_endpoint(self) -> Endpoint:
        """The endpoint on the API's port."""
        if not self.own_port:
            return self.endpoint()
        operation = replace(self.endpoint().operation, needs_key=False)
        return Endpoint(operation, _answer_elsewhere)


class MetricsApp:
    """Serves `/metrics` and nothing else."""

    def __init__(self, metrics: Metrics, endpoint: PathEndpoint) -> None:
        endpoint.add(metrics.endpoint())
        self._requests = metrics.requests
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await measured(self._requests, self._route, scope, receive, send)

    def refusal(self, target: bytes, status: int, message: str) -> Answer:
        self._requests.of(NO_OPERATION).refused(status)
        return refusal_answer(status, message)

    async def overload(self, target: bytes, message: str) -> Answer:
        return self.refusal(target, 503, message)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == PATH:
            await self._endpoint(scope, receive, send)
        else:
            await answer_request(_answer_other_path, error_answer, scope, receive, send)


async def _answer_elsewhere(scope: Scope, receive: Receive) -> Answer:
    message = f"{PATH} is on a port of its own: the one that METRICS_PORT names"
    return answer(404, Code.NOT_FOUND, message, None)


async def _answer_other_path(scope: Scope, receive: Receive) -> Answer:
    message = f"no such path: this port has {PATH} only, and the API is on PORT"
    return answer(404, Code.NOT_FOUND, message, None)
