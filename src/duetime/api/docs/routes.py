"""The documents that the service serves about itself."""

from importlib import resources
from typing import Any

from starlette.types import Receive, Scope

from duetime.api.docs.page import docs_answer
from duetime.api.http.answers import Answer
from duetime.api.http.operation import Operation, OperationGroup
from duetime.api.openapi.document import openapi_json
from duetime.ports.clock import Clock


def _static_file(name: str, media: bytes) -> Answer:
    content = (resources.files(__package__) / "static" / name).read_bytes()
    headers = (
        (b"content-type", media),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-cache"),
    )
    return Answer(200, content, headers)


_STYLE = _static_file("docs.css", b"text/css; charset=utf-8")
_SCRIPT = _static_file("docs.js", b"text/javascript; charset=utf-8")
_ICON = _static_file("icon.svg", b"image/svg+xml")


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

    async def docs_style(self, scope: Scope, receive: Receive) -> Answer:
        return _STYLE

    async def docs_script(self, scope: Scope, receive: Receive) -> Answer:
        return _SCRIPT

    async def docs_icon(self, scope: Scope, receive: Receive) -> Answer:
        return _ICON

    async def front_page(self, scope: Scope, receive: Receive) -> Answer:
        return Answer(307, b"", ((b"location", b"/ui"),))


_OPERATIONS: tuple[Operation[Documents], ...] = tuple(
    Operation(id=id, method="GET", path=path, handler=handler, needs_key=False)
    for id, path, handler in (
        ("openapi", "/openapi.json", Documents.openapi),
        ("asyncapi", "/asyncapi.json", Documents.asyncapi),
        ("docsPage", "/docs", Documents.docs_page),
        ("docsStyle", "/docs/docs.css", Documents.docs_style),
        ("docsScript", "/docs/docs.js", Documents.docs_script),
        ("docsIcon", "/docs/icon.svg", Documents.docs_icon),
        ("frontPage", "/", Documents.front_page),
    )
)

DOCUMENTS: tuple[OperationGroup[Any], ...] = (OperationGroup(Documents, _OPERATIONS),)
