"""The OpenAPI document: one for both APIs."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from msgspec import json

from duetime import __version__
from duetime.api.http.operation import (
    SERVICE,
    Body,
    Callback,
    Examples,
    Json,
    Operation,
    Parameter,
    Response,
    Tag,
)
from duetime.api.metrics.routes import METRICS
from duetime.api.openapi.schemas import schema_name, schemas_of
from duetime.api.platform.public_keys import PUBLIC_KEYS
from duetime.api.platform.routes import HEALTH, PLATFORM
from duetime.api.platform.routes import TIMERS as PLATFORM_TIMERS
from duetime.api.v1.routes.audit_log import AUDIT_LOG
from duetime.api.v1.routes.bulk_operations import OPERATIONS
from duetime.api.v1.routes.keys import KEYS
from duetime.api.v1.routes.namespaces import NAMESPACES
from duetime.api.v1.routes.secrets import SECRETS
from duetime.api.v1.routes.table import V1
from duetime.api.v1.routes.timers import TIMERS, TIMERS_NAMED_IN_THE_BODY
from duetime.api.v1.routes.ui_links import WEB_UI
from duetime.telemetry.current_work import MAX_REQUEST_ID_CHARACTERS

_TAGS = (
    *(TIMERS, TIMERS_NAMED_IN_THE_BODY, OPERATIONS),
    *(NAMESPACES, KEYS, SECRETS, AUDIT_LOG, WEB_UI),
    *(PLATFORM_TIMERS, SERVICE),
)

_DOCUMENTED: tuple[tuple[Tag, Operation[Any]], ...] = tuple(
    (operation.tag, operation)
    for group in (*V1, *PLATFORM, *HEALTH, *METRICS, *PUBLIC_KEYS)
    for operation in group.operations
    if operation.tag is not None
)

_REQUEST_ID: Json = {
    "description": "Identifies the request in the service's log: the `X-Request-Id` that the "
    f"client sent, if it has at most {MAX_REQUEST_ID_CHARACTERS} letters, digits and characters of "
    "`._:+/=@-`, else a new id.",
    "required": True,
    "schema": {"type": "string", "example": "9c1e6a0b52f7d384"},
}
_ANSWER_HEADERS: Json = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}

_DESCRIPTION = (
    "Register a callback for an instant, and Duetime makes it: durably, on time, at least once.\n\n"
    "Start with the Timer API v1, `/api/v1`: you choose the ids, so repeating a request is safe, "
    "and failures are retried by default. Take the platform API, `/timers`, for callbacks over "
    "NATS, or if the service is to make the ids. Take the message bus, described by "
    "`/asyncapi.json`, if your system speaks in commands and events already. Behind them are the "
    "same timers: a timer that was created through one can be read through the others."
)


@cache
def openapi_json() -> bytes:
    return json.encode(openapi_document())


@cache
def openapi_document() -> Json:
    paths: dict[str, dict[str, object]] = {}
    for tag, operation in _DOCUMENTED:
        described = _operation(operation, tag)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duetime",
            "version": __version__,
            "summary": "Durable timers with callbacks over HTTP or NATS, or events on a bus.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"apiKey": []}, {"bearer": []}],
        "tags": [{"name": tag.name, "description": tag.description} for tag in _TAGS],
        "paths": paths,
        "components": {
            "schemas": schemas_of(dict.fromkeys(_types())),
            "headers": {"RequestId": _REQUEST_ID},
            "securitySchemes": {
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": "The service's `API_KEY`, or a key made by `POST "
                    "/api/v1/keys`. Not needed if the service runs with `AUTH=none`.",
                },
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The same key as `Authorization: Bearer`.",
                },
            },
        },
    }


def _types() -> Iterator[Any]:
    """The types of all bodies."""
    for _, operation in _DOCUMENTED:
        callback = operation.callback
        parts = (operation.body, *operation.responses)
        if callback is not None:
            parts += (callback.body, *callback.responses)
        for part in parts:
            if part is not None and isinstance(part.schema, type):
                yield part.schema


def _operation(operation: Operation[Any], tag: Tag) -> Json:
    body, callback = operation.body, operation.callback
    described = _present(
        operationId=operation.id,
        tags=[tag.name],
        summary=operation.summary,
        description=operation.description,
        parameters=_parameters(operation.parameters),
        requestBody=None if body is None else _body(body),
        responses=_responses(operation.responses, _ANSWER_HEADERS),
        callbacks=None if callback is None else {"timerDue": _callback(callback)},
    )
    return described if operation.needs_key else {**described, "security": []}


def _present(**members: object) -> Json:
    """The members that are not empty."""
    return {name: member for name, member in members.items() if member}


def _parameters(parameters: Iterable[Parameter]) -> list[Json]:
    return [
        _present(
            name=each.name,
            **{"in": each.place},
            required=each.place != "query" and not each.optional,
            description=each.description,
            schema=each.schema,
            example=each.example,
        )
        for each in parameters
    ]


def _body(body: Body) -> Json:
    content = _contents(body.schema, body.examples, body.media)
    return _present(required=body.required, content=content)


def _responses(responses: Iterable[Response], headers: Json) -> Json:
    """`headers` are those that every response has."""
    return {
        each.status: _present(
            description=each.description,
            headers={**each.headers, **headers},
            content=each.schema and _contents(each.schema, each.examples, each.media),
            links=each.links,
        )
        for each in responses
    }


def _contents(schema: type[Any] | Json, examples: Examples, media: Iterable[str]) -> Json:
    if isinstance(schema, type):
        schema = {"$ref": f"#/components/schemas/{schema_name(schema)}"}
    named = {name: {"value": value} for name, value in examples.items()}
    content = {"schema": schema, "examples": named}
    return dict.fromkeys(media, content)


def _callback(callback: Callback) -> Json:
    return {
        callback.url: {
            "post": {
                "summary": callback.summary,
                "description": callback.description,
                "security": [],
                "parameters": _parameters(_CALLBACK_HEADERS),
                "requestBody": _body(callback.body),
                "responses": _responses(callback.responses, {}),
            }
        }
    }


_CALLBACK_HEADERS = (
    Parameter(
        "webhook-id",
        "Identifies the firing, and is the same in all its repeats. Remember the ids of firings "
        "that you have handled, and ignore their repeats.",
        {"type": "string"},
        place="header",
        example="01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c11",
    ),
    Parameter(
        "webhook-timestamp",
        "Instant at which this attempt was sent, in seconds since 1970 UTC.",
        {"type": "integer"},
        place="header",
        example=1893499200,
    ),
    Parameter(
        "webhook-signature",
        "Signatures of `webhook-id`, `webhook-timestamp` and the body, as Standard Webhooks "
        "specifies: one for each current secret of the timer's namespace, with spaces between "
        "them. `v1` is HMAC-SHA256, `v1a` is Ed25519. Absent if the namespace has no secret.",
        {"type": "string"},
        place="header",
        example="v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        optional=True,
    ),
    Parameter(
        "Timer-Attempt",
        "1 for the first attempt of a firing, then 2, 3 and so on.",
        {"type": "integer", "minimum": 1},
        place="header",
        example=1,
    ),
)
