"""The documents that the service serves about itself."""

from typing import Any

from starlette.types import Receive, Scope

from duetime.api.docs.page import docs_answer
from duetime.api.http.answers import Answer
from duetime.api.http.operation import Operation, OperationGroup
from duetime.api.openapi.document import openapi_json
from duetime.ports.clock import Clock


class Documents:
    def __init__(self, asyncapi: bytes, clock: Clock) -> None:
        self._asyncapi = asyncapi
        self._clock = clock

    async def openapi(self, scope: Scope, receive: Receive) -> Answer:
        return Answer(200, openapi_json())

    async def asyncapi(self, scope: Scope, receive: Receive) -> Answer:
        return Answer(200, self._asyncapi)

    async def docs_page(self, scope: Scope, receive: Receive) -> Answer:
        return docs_answer(scope, self._clock.now())

    async def front_page(self, scope: Scope, receive: Receive) -> Answer:
        return Answer(307, b"", ((b"location", b"/docs"),))


_OPERATIONS: tuple[Operation[Documents], ...] = tuple(
    Operation(id=id, method="GET", path=path, handler=handler, needs_key=False)
    for id, path, handler in (
        ("openapi", "/openapi.json", Documents.openapi),
        ("asyncapi", "/asyncapi.json", Documents.asyncapi),
        ("docsPage", "/docs", Documents.docs_page),
        ("frontPage", "/", Documents.front_page),
    )
)

DOCUMENTS: tuple[OperationGroup[Any], ...] = (OperationGroup(Documents, _OPERATIONS),)
