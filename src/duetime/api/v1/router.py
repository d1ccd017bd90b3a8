"""Which path of the v1 API leads to which handler, and what happens when something goes wrong."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.types import Receive, Scope, Send

from duetime.api.http.answers import Answer
from duetime.api.http.auth import ApiKeyGuard
from duetime.api.http.body import BodyWatch, ClientGone
from duetime.api.http.query import parameters
from duetime.api.v1.endpoints import EndpointsV1
from duetime.api.v1.errors import error_answer, method_not_allowed, no_such_path
from duetime.api.v1.namespaces import NamespacesV1
from duetime.api.v1.paths import path_below_prefix
from duetime.api.v1.timers import TimersV1
from duetime.ports.clock import Clock

Handler = Callable[[Scope, Receive], Awaitable[Answer]]
Methods = Mapping[str, Handler]


_NO_PARAMETERS: frozenset[str] = frozenset()


class DoorV1:
    """Routes by the path as it was sent: an id may contain slashes, encoded or not.

    The key is checked before anything else of a request is read. A query is refused where nobody
    would read it: who asks for `?dryRun=true` should not be taken at half their word.
    """

    def __init__(
        self,
        timers: TimersV1,
        namespaces: NamespacesV1,
        endpoints: EndpointsV1,
        guard: ApiKeyGuard,
        clock: Clock,
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._exact: dict[bytes, Methods] = {
            b"timers": {"GET": timers.page, "POST": timers.create},
            b"timers/create": {"POST": timers.upsert},
            b"timers/get": {"POST": timers.get_selected},
            b"timers/update": {"POST": timers.update_selected},
            b"timers/delete": {"POST": timers.delete_selected},
            b"timers/batch": {"POST": timers.create_batch},
            b"timers/import": {"POST": timers.create_stream},
            b"timers/redrive": {"POST": timers.redrive},
            b"namespaces": {"GET": namespaces.page},
            b"endpoints": {"GET": endpoints.page},
        }
        self._one_timer: Methods = {
            "GET": timers.get,
            "PUT": timers.update,
            "DELETE": timers.delete,
        }
        self._one_namespace: Methods = {"GET": namespaces.get, "PUT": namespaces.put}
        self._readers_of_queries: set[Handler] = {timers.page, timers.create_stream}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watch = BodyWatch(scope, receive)
        try:
            answer = await self._answer(scope, watch.receive)
        except ClientGone:
            return
        except Exception as error:
            answer = error_answer(error, scope, self._clock.now())
        await watch.ending(answer).send(send)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        methods = self._methods_of(path_below_prefix(scope))
        if methods is None:
            return no_such_path(self._clock.now())
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        handler = methods.get(method)
        if handler is None:
            return method_not_allowed(methods, self._clock.now())
        self._guard.check(scope["headers"])
        if handler not in self._readers_of_queries:
            parameters(scope["query_string"], _NO_PARAMETERS)
        return await handler(scope, receive)

    def _methods_of(self, path: bytes) -> Methods | None:
        methods = self._exact.get(path)
        if methods is not None:
            return methods
        collection, _, rest = path.partition(b"/")
        if collection == b"timers" and 0 < rest.find(b"/") < len(rest) - 1:
            return self._one_timer
        # A slash in the name of a namespace has to be encoded: one at the end would make another,
        # which nobody could remove.
        if collection == b"namespaces" and rest and b"/" not in rest:
            return self._one_namespace
        return None
