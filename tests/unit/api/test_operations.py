"""The tables of operations are the only source of routes, of the OpenAPI document and of the docs
page."""

import re
from typing import Any

import pytest

from duetime.api.docs.page import render
from duetime.api.docs.routes import DOCUMENTS
from duetime.api.http.operation import Operation
from duetime.api.metrics.routes import METRICS
from duetime.api.openapi.document import openapi_document
from duetime.api.platform.public_keys import PUBLIC_KEYS
from duetime.api.platform.routes import CREATE_TIMER, HEALTH, PLATFORM
from duetime.api.v1.routes.table import V1
from duetime.domain.instants import Instant
from tests.unit.api.asgi_client import ApiBench, call

ALL: tuple[Operation[Any], ...] = tuple(
    operation
    for group in (*PLATFORM, *V1, *HEALTH, *METRICS, *PUBLIC_KEYS, *DOCUMENTS)
    for operation in group.operations
)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW")


def example_path(operation: Operation[Any]) -> str:
    path = operation.path
    for parameter in operation.parameters:
        if parameter.place == "path":
            path = path.replace("{" + parameter.name + "}", str(parameter.example))
    return path


PATHS = {example_path(operation): operation.path for operation in ALL}


def methods_of(path: str) -> set[str]:
    methods: set[str] = {each.method for each in ALL if each.path == path}
    if path.endswith("}/cancel"):
        # An id may end in "/cancel", and only POST is not used on the path of a timer.
        methods |= methods_of(path.removesuffix("/cancel"))
    return methods


def test_no_operation_is_listed_twice() -> None:
    assert len({(operation.method, operation.path) for operation in ALL}) == len(ALL)
    assert len({operation.id for operation in ALL}) == len(ALL)


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.id)
async def test_every_operation_is_routed(api: ApiBench, operation: Operation[Any]) -> None:
    reply = await api.request(operation.method, example_path(operation))
    assert reply.status != 405
    assert b"no such path" not in reply.content


@pytest.mark.parametrize("path", PATHS)
async def test_no_other_method_is_routed(api: ApiBench, path: str) -> None:
    allowed = methods_of(PATHS[path])
    assert allowed
    for method in set(METHODS) - allowed:
        reply = await api.request(method, path)
        assert reply.status == 405
        assert set(reply.headers["allow"].split(", ")) - {"HEAD"} == allowed


@pytest.mark.parametrize("path", PATHS)
async def test_no_path_beside_the_table_is_routed(api: ApiBench, path: str) -> None:
    assert (await api.request("GET", f"/x{path}")).error == (404, 3, "no such path")


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.id)
async def test_the_table_decides_who_may_call(api: ApiBench, operation: Operation[Any]) -> None:
    headers = [(b"host", b"timers.example")]
    reply = await call(api.app, operation.method, example_path(operation), headers=headers)
    assert (reply.status == 401) is operation.needs_key


def test_the_app_serves_the_tables_and_nothing_else(api: ApiBench) -> None:
    assert {operation.id for operation in api.app.operations} == {each.id for each in ALL}


def test_the_document_has_every_served_operation_with_a_tag_and_nothing_else(
    api: ApiBench,
) -> None:
    document: Any = openapi_document()
    described = {
        (method.upper(), path, operation["operationId"])
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert described == {
        (operation.method, operation.path, operation.id)
        for operation in api.app.operations
        if operation.tag is not None
    }


def test_only_the_documents_are_left_out_of_the_document(api: ApiBench) -> None:
    left_out = {operation.path for operation in api.app.operations if operation.tag is None}
    assert left_out == {
        "/",
        "/asyncapi.json",
        "/docs",
        "/docs/docs.css",
        "/docs/docs.js",
        "/docs/icon.svg",
        "/openapi.json",
    }


def test_the_docs_page_has_every_documented_operation_and_nothing_else() -> None:
    page = render("http://timers.example", Instant(0))
    shown = re.findall(r'<section id="(\w+)"><h3><a [^>]*>[^<]*</a></h3><p class=path>', page)
    assert sorted(shown) == sorted(each.id for each in ALL if each.tag is not None)


def test_the_fast_path_takes_the_create_of_the_table(api: ApiBench) -> None:
    headers = [
        (b"x-api-key", b"a-key-of-at-least-thirty-two-characters"),
        (b"host", b"timers.example"),
        (b"content-length", b"2"),
    ]
    method, path = CREATE_TIMER.method.encode(), CREATE_TIMER.path.encode()
    fast_create = api.app.fast_create
    assert fast_create.admit(method, path, headers)
    assert not fast_create.admit(method, b"/other", headers)
    assert not fast_create.admit(b"PUT", path, headers)
    for repeated in headers[:2]:
        assert not fast_create.admit(method, path, [*headers, repeated])
    assert not fast_create.admit(method, path, [headers[0], headers[2]])
    assert not fast_create.admit(method, path, [headers[0], (b"host", b"a b"), headers[2]])
