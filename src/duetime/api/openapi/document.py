"""The OpenAPI document: one for both APIs."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from msgspec import json

from duetime import __version__
from duetime.api.http.operations import (
    JSON_MEDIA,
    SERVICE,
    Body,
    Callback,
    Examples,
    Json,
    Operation,
    Parameter,
    Response,
)
from duetime.api.openapi.schemas import schema_name, schemas_of
from duetime.api.platform.operations import HEALTH_OPERATIONS
from duetime.api.platform.operations import TIMER_OPERATIONS as PLATFORM_TIMER_OPERATIONS
from duetime.api.platform.operations import TIMERS as PLATFORM_TIMERS
from duetime.api.v1.operations.namespaces import (
    ENDPOINT_OPERATIONS,
    NAMESPACE_OPERATIONS,
    NAMESPACES,
)
from duetime.api.v1.operations.timers import TIMER_OPERATIONS, TIMERS

OPERATIONS: tuple[Operation[Any], ...] = (
    *PLATFORM_TIMER_OPERATIONS,
    *TIMER_OPERATIONS,
    *NAMESPACE_OPERATIONS,
    *ENDPOINT_OPERATIONS,
    *HEALTH_OPERATIONS,
)
_TAGS = (PLATFORM_TIMERS, TIMERS, NAMESPACES, SERVICE)

_DESCRIPTION = (
    "Register a callback for an instant, and Duetime makes it: durably, on time, at least once. "
    "Two HTTP APIs serve the same timers. The platform API, `/timers`, is the small one; its ids "
    "are UUIDs that the service makes. The Timer API v1, `/api/v1`, has namespaces, ids that the "
    "client chooses, batches and imports, and callbacks whose answers decide what happens to the "
    "timer. A timer created through one can be read through the other. Timers can also be "
    "registered over a message bus, whose messages `/asyncapi.json` describes."
)


@cache
def openapi_json() -> bytes:
    return json.encode(openapi_document())


@cache
def openapi_document() -> Json:
    paths: dict[str, dict[str, object]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duetime",
            "version": __version__,
            "summary": "Durable timers with callbacks over HTTP or NATS, or events on a bus.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"apiKey": []}],
        "tags": [{"name": tag.name, "description": tag.description} for tag in _TAGS],
        "paths": paths,
        "components": {
            "schemas": schemas_of(dict.fromkeys(_types())),
            "securitySchemes": {
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": "The service's key. Not needed if it runs with `AUTH=none`.",
                },
            },
        },
    }


def _types() -> Iterator[Any]:
    """The types of all bodies."""
    for operation in OPERATIONS:
        callback = operation.callback
        parts = (operation.body, *operation.responses)
        if callback is not None:
            parts += (callback.body, *callback.responses)
        for part in parts:
            if part is not None and isinstance(part.schema, type):
                yield part.schema


def _operation(operation: Operation[Any]) -> Json:
    found: dict[str, object] = {"operationId": operation.id, "summary": operation.summary}
    if operation.tag is not None:
        found["tags"] = [operation.tag.name]
    if operation.description:
        found["description"] = operation.description
    if not operation.needs_key:
        found["security"] = []
    if operation.parameters:
        found["parameters"] = [_parameter(each) for each in operation.parameters]
    if operation.body is not None:
        found["requestBody"] = _body(operation.body)
    found["responses"] = _responses(operation.responses)
    if operation.callback is not None:
        found["callbacks"] = {"timerDue": _callback(operation.callback)}
    return found


def _parameter(parameter: Parameter) -> Json:
    found: dict[str, object] = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "schema": parameter.schema,
    }
    if parameter.place == "path":
        found |= {"required": True, "example": parameter.example}
    return found


def _body(body: Body) -> Json:
    content = {media: _content(body.schema, body.examples) for media in body.media}
    return {"required": True, "content": content} if body.required else {"content": content}


def _responses(responses: Iterable[Response]) -> Json:
    return {response.status: _response(response) for response in responses}


def _response(response: Response) -> Json:
    found: dict[str, object] = {"description": response.description}
    if response.schema is not None:
        found["content"] = {JSON_MEDIA: _content(response.schema, response.examples)}
    if response.headers:
        found["headers"] = response.headers
    if response.links:
        found["links"] = response.links
    return found


def _content(type_or_schema: type[Any] | Json, examples: Examples) -> Json:
    schema: Json = (
        {"$ref": f"#/components/schemas/{schema_name(type_or_schema)}"}
        if isinstance(type_or_schema, type)
        else type_or_schema
    )
    return {
        "schema": schema,
        "examples": {name: {"value": value} for name, value in examples.items()},
    }


def _callback(callback: Callback) -> Json:
    return {
        callback.url: {
            "post": {
                "summary": callback.summary,
                "description": callback.description,
                "security": [],
                "parameters": _CALLBACK_HEADERS,
                "requestBody": _body(callback.body),
                "responses": _responses(callback.responses),
            }
        }
    }


def _callback_header(name: str, description: str, schema: Json, example: str | int) -> Json:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": schema,
        "example": example,
    }


_CALLBACK_HEADERS = [
    _callback_header(
        "webhook-id",
        "Identifies the firing, and is the same in all its repeats. Remember the ids of firings "
        "that you have handled, and ignore their repeats.",
        {"type": "string"},
        "01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c11",
    ),
    _callback_header(
        "webhook-timestamp",
        "Instant at which this attempt was sent, in seconds since 1970 UTC.",
        {"type": "integer"},
        1893499200,
    ),
    _callback_header(
        "Timer-Attempt",
        "1 for the first attempt of a firing, then 2, 3 and so on.",
        {"type": "integer", "minimum": 1},
        1,
    ),
]
