"""The OpenAPI document of the platform API."""

from collections.abc import Mapping
from functools import cache

from msgspec import json

from duetime import __version__
from duetime.api import openapi_examples as examples
from duetime.api.answers import Answer
from duetime.api.openapi_descriptions import describe_answers
from duetime.api.platform_query import DEFAULT_LIMIT, MAX_LIMIT, MAX_OFFSET, ORDERS, SORT_FIELDS
from duetime.api.platform_query import STATUSES as STATUS_CHOICES
from duetime.api.platform_types import (
    CanceledTimer,
    ChangedTimer,
    CreateTimerBody,
    HealthStatus,
    TimerDetail,
    TimerList,
    TimerSummary,
    UpdateTimerBody,
)

Json = Mapping[str, object]

_TYPES = (
    CreateTimerBody,
    UpdateTimerBody,
    TimerSummary,
    ChangedTimer,
    CanceledTimer,
    TimerDetail,
    TimerList,
    HealthStatus,
)

_DESCRIPTION = (
    "Register a callback for an instant, and it is made: durably, on time, at least once. "
    "Every answer has the form `{code, message, data}`; code 0 is success, 1 an unexpected "
    "error, 2 invalid input, 3 not found, 4 unauthorized."
)

_KEY = "The header X-API-Key is missing or wrong."
_INTERNAL = "The service could not do its work now."


def openapi_answer() -> Answer:
    return Answer(200, _encoded())


@cache
def _encoded() -> bytes:
    return json.encode(openapi_document())


@cache
def openapi_document() -> Json:
    _, components = json.schema_components(_TYPES, ref_template="#/components/schemas/{name}")
    describe_answers(components)
    components["Error"] = _envelope_schema({"type": "null"}, code={"enum": [1, 2, 3, 4]})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duetime",
            "version": __version__,
            "summary": "Durable timers with callbacks over HTTP.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"apiKey": []}],
        "tags": [{"name": "Timers"}, {"name": "Service"}],
        "paths": {
            "/timers": {"post": _create(), "get": _list()},
            "/timers/{id}": {
                "parameters": [_id_parameter()],
                "get": _get(),
                "put": _update(),
                "delete": _cancel(),
            },
            "/healthz": {"get": _health()},
        },
        "components": {
            "schemas": components,
            "securitySchemes": {
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def _create() -> Json:
    return {
        "operationId": "createTimer",
        "tags": ["Timers"],
        "summary": "Create a timer",
        "description": "Answered once the timer is durable. `execute_at` must be at least "
        "`MIN_DELAY_SECONDS` (5 unless configured) and at most 100 years ahead.",
        "requestBody": _body("CreateTimerBody", {"HTTP callback": examples.CREATE}),
        "responses": {
            "201": _success("The timer was created.", "TimerSummary", examples.CREATED),
            "200": _success(
                "The idempotency key was used for this same timer before; here it is.",
                "TimerSummary",
                examples.EXISTING,
            ),
            **_failures(
                (400, "A value is not acceptable.", 2, "execute_at must be in the future"),
                (401, _KEY, 4, "missing or invalid X-API-Key"),
                (
                    409,
                    "The idempotency key belongs to another timer.",
                    2,
                    "idempotency_key was used for a different timer",
                ),
                (413, "Too large.", 2, "callback.payload must be at most 262144 bytes of JSON"),
                (500, _INTERNAL, 1, "internal error"),
            ),
        },
    }


def _list() -> Json:
    return {
        "operationId": "listTimers",
        "tags": ["Timers"],
        "summary": "List timers",
        "parameters": [
            _choice_parameter("status", "Only timers with this status.", list(STATUS_CHOICES)),
            _number_parameter("limit", "Timers on a page.", 1, MAX_LIMIT, DEFAULT_LIMIT),
            _number_parameter("offset", "Timers to skip.", 0, MAX_OFFSET, 0),
            _choice_parameter("sort", "What to sort by.", list(SORT_FIELDS), "created_at"),
            _choice_parameter("order", "Which end comes first.", list(ORDERS), "desc"),
        ],
        "responses": {
            "200": _success("A page of timers.", "TimerList", examples.LIST),
            **_failures(
                (400, "A parameter is wrong.", 2, "limit must be a whole number from 1 to 200"),
                (401, _KEY, 4, "missing or invalid X-API-Key"),
                (500, _INTERNAL, 1, "internal error"),
            ),
        },
    }


def _get() -> Json:
    return {
        "operationId": "getTimer",
        "tags": ["Timers"],
        "summary": "Get a timer",
        "responses": {
            "200": _success("The timer.", "TimerDetail", examples.DETAIL),
            **_failures(*_failures_of_one("id must be a UUID")),
        },
    }


def _update() -> Json:
    return {
        "operationId": "updateTimer",
        "tags": ["Timers"],
        "summary": "Change a pending timer",
        "description": "Once this is answered with 200, the old version never fires.",
        "requestBody": _body("UpdateTimerBody", {"New instant": examples.UPDATE}),
        "responses": {
            "200": _success("The changed timer.", "ChangedTimer", examples.UPDATED),
            **_failures(
                *_failures_of_one("cannot update timer with status 'completed'"),
                (413, "Too large.", 2, "body must be at most 1048576 bytes"),
            ),
        },
    }


def _cancel() -> Json:
    return {
        "operationId": "cancelTimer",
        "tags": ["Timers"],
        "summary": "Cancel a pending timer",
        "description": "Once this is answered with 200, the timer never fires. A timer that is "
        "canceled already may be canceled again.",
        "responses": {
            "200": _success("The timer is canceled.", "CanceledTimer", examples.CANCELED),
            **_failures(*_failures_of_one("cannot cancel timer with status 'completed'")),
        },
    }


def _health() -> Json:
    schema = {"$ref": "#/components/schemas/HealthStatus"}
    return {
        "operationId": "health",
        "tags": ["Service"],
        "summary": "Health of the service",
        "description": "Public. Answers within 5 seconds.",
        "security": [],
        "responses": {
            "200": _success("The service does its job.", "HealthStatus", examples.HEALTHY),
            "500": {
                "description": "The store does not answer, or the engine does not run.",
                "content": _content(_envelope_schema(schema), {"Degraded": examples.DEGRADED}),
            },
        },
    }


Failure = tuple[int, str, int, str]


def _failures_of_one(example: str) -> tuple[Failure, ...]:
    return (
        (400, "Not acceptable, or not in this status.", 2, example),
        (401, _KEY, 4, "missing or invalid X-API-Key"),
        (404, "There is no such timer.", 3, "timer not found"),
        (500, _INTERNAL, 1, "internal error"),
    )


def _failures(*failures: Failure) -> Json:
    error = {"$ref": "#/components/schemas/Error"}
    return {
        str(status): {
            "description": description,
            "content": _content(error, {"Error": examples.failure(code, message)}),
        }
        for status, description, code, message in failures
    }


def _success(description: str, data: str, example: Json) -> Json:
    schema = _envelope_schema({"$ref": f"#/components/schemas/{data}"}, code={"const": 0})
    return {"description": description, "content": _content(schema, {"Success": example})}


def _body(schema: str, given: Mapping[str, Json]) -> Json:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {"required": True, "content": _content(reference, given)}


def _content(schema: Json, given: Mapping[str, Json]) -> Json:
    named = {name: {"value": value} for name, value in given.items()}
    return {"application/json": {"schema": schema, "examples": named}}


def _envelope_schema(data: Json, code: Json | None = None) -> Json:
    return {
        "type": "object",
        "properties": {
            "code": {"type": "integer", **(code or {})},
            "message": {"type": "string"},
            "data": data,
        },
        "required": ["code", "message", "data"],
    }


def _id_parameter() -> Json:
    return {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The timer's id, a UUID.",
        "schema": {"type": "string", "format": "uuid"},
        "example": examples.TIMER_ID,
    }


def _choice_parameter(
    name: str, description: str, choices: list[str], default: str | None = None
) -> Json:
    schema: dict[str, object] = {"type": "string", "enum": choices}
    if default is not None:
        schema["default"] = default
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _number_parameter(name: str, description: str, low: int, high: int, default: int) -> Json:
    schema = {"type": "integer", "minimum": low, "maximum": high, "default": default}
    return {"name": name, "in": "query", "description": description, "schema": schema}
