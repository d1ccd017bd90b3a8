"""The platform API's part of the OpenAPI document, and the service's own paths."""

from typing import Any

from duetime.api.openapi import platform_examples as examples
from duetime.api.openapi.callbacks import platform_callbacks
from duetime.api.openapi.descriptions import describe_answers
from duetime.api.openapi.parts import (
    Json,
    choice_parameter,
    content,
    json_body,
    number_parameter,
    path_parameter,
    reference,
)
from duetime.api.openapi.schemas import Schemas, refuse_together, schemas_of
from duetime.api.platform.query import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    MAX_OFFSET,
    ORDERS,
    SORT_FIELDS,
    STATUSES,
)
from duetime.api.platform.types import (
    CanceledTimer,
    ChangedTimer,
    CreateTimerBody,
    HealthStatus,
    TimerDetail,
    TimerList,
    TimerSummary,
    UpdateTimerBody,
)

TAG = "Platform timers"
DESCRIPTION = (
    "Every answer has the form `{code, message, data}`; code 0 is success, 1 an unexpected "
    "error, 2 invalid input, 3 not found, 4 unauthorized."
)
SERVICE_TAG = "Service"
SERVICE_DESCRIPTION = "How the service itself is doing."

_DATA_TYPES = (TimerSummary, ChangedTimer, CanceledTimer, TimerDetail, TimerList, HealthStatus)

_KEY = "The header X-API-Key is missing or wrong."
_INTERNAL = "The service could not do its work now."

Failure = tuple[int, str, int, str]


def schemas() -> Schemas:
    found = schemas_of((CreateTimerBody, UpdateTimerBody, *_DATA_TYPES))
    describe_answers(found)
    found["UpdateTimerBody"]["minProperties"] = 1
    refuse_together(
        found["RetryPolicyBody"],
        ("max_retries", "max_attempts"),
        ("max_retry_attempts_duration", "max_attempts_duration"),
    )
    for data in _DATA_TYPES:
        codes = {"enum": [0, 1]} if data is HealthStatus else {"const": 0}
        found |= _envelope(f"{data.__name__}Envelope", reference(data.__name__), codes)
    return found | _envelope("Error", {"type": "null"}, {"enum": [1, 2, 3, 4]})


def timer_paths() -> dict[str, Json]:
    return {
        "/timers": {"post": _create(), "get": _list()},
        "/timers/{id}": {
            "parameters": [_id_parameter()],
            "get": _get(),
            "put": _update(),
            "delete": _cancel(),
        },
    }


def service_paths() -> dict[str, Json]:
    return {"/healthz": {"get": _health()}}


def _create() -> Json:
    return {
        "operationId": "createTimer",
        "tags": [TAG],
        "summary": "Create a timer",
        "description": "Answered once the timer is durable. `execute_at` must be at least "
        "`MIN_DELAY_SECONDS` (5 unless configured) and at most 100 years ahead.",
        "requestBody": json_body(
            "CreateTimerBody",
            {"HTTP callback": examples.CREATE, "NATS callback": examples.CREATE_NATS},
        ),
        "responses": {
            "201": _success(
                "The timer was created.", "TimerSummary", examples.CREATED, links=_LINKS
            ),
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
        "callbacks": platform_callbacks(),
    }


def _list() -> Json:
    return {
        "operationId": "listTimers",
        "tags": [TAG],
        "summary": "List timers",
        "parameters": [
            choice_parameter("status", "Only timers with this status.", list(STATUSES)),
            number_parameter("limit", "Timers on a page.", 1, MAX_LIMIT, DEFAULT_LIMIT),
            number_parameter("offset", "Timers to skip.", 0, MAX_OFFSET, 0),
            choice_parameter("sort", "What to sort by.", list(SORT_FIELDS), "created_at"),
            choice_parameter("order", "Which end comes first.", list(ORDERS), "desc"),
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
        "tags": [TAG],
        "summary": "Get a timer",
        "responses": {
            "200": _success("The timer.", "TimerDetail", examples.DETAIL),
            **_failures(*_failures_of_one("id must be a UUID")),
        },
    }


def _update() -> Json:
    return {
        "operationId": "updateTimer",
        "tags": [TAG],
        "summary": "Change a pending timer",
        "description": "Once this is answered with 200, the old version never fires.",
        "requestBody": json_body("UpdateTimerBody", {"New instant": examples.UPDATE}),
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
        "tags": [TAG],
        "summary": "Cancel a pending timer",
        "description": "Once this is answered with 200, the timer never fires. A timer that is "
        "canceled already may be canceled again.",
        "responses": {
            "200": _success("The timer is canceled.", "CanceledTimer", examples.CANCELED),
            **_failures(*_failures_of_one("cannot cancel timer with status 'completed'")),
        },
    }


def _health() -> Json:
    return {
        "operationId": "health",
        "tags": [SERVICE_TAG],
        "summary": "Health of the service",
        "description": "Public. Answers within 5 seconds.",
        "security": [],
        "responses": {
            "200": _success("The service does its job.", "HealthStatus", examples.HEALTHY),
            "500": {
                "description": "The store does not answer, or the engine does not run.",
                "content": content(
                    reference("HealthStatusEnvelope"), {"Degraded": examples.DEGRADED}
                ),
            },
        },
    }


def _failures_of_one(example: str) -> tuple[Failure, ...]:
    return (
        (400, "Not acceptable, or not in this status.", 2, example),
        (401, _KEY, 4, "missing or invalid X-API-Key"),
        (404, "There is no such timer.", 3, "timer not found"),
        (500, _INTERNAL, 1, "internal error"),
    )


def _failures(*failures: Failure) -> Json:
    return {
        str(status): {
            "description": description,
            "content": content(reference("Error"), {"Error": examples.failure(code, message)}),
        }
        for status, description, code, message in failures
    }


def _success(description: str, data: str, example: Json, links: Json | None = None) -> Json:
    answer: dict[str, Any] = {
        "description": description,
        "content": content(reference(f"{data}Envelope"), {"Success": example}),
    }
    return answer if links is None else {**answer, "links": links}


_LINKS = {
    name: {"operationId": operation, "parameters": {"id": "$response.body#/data/id"}}
    for name, operation in (
        ("get", "getTimer"),
        ("update", "updateTimer"),
        ("cancel", "cancelTimer"),
    )
}


def _envelope(name: str, data: Json, codes: Json) -> Schemas:
    members = {
        "code": {"type": "integer", **codes},
        "message": {"type": "string"},
        "data": data,
    }
    return {
        name: {
            "title": name,
            "type": "object",
            "properties": members,
            "required": list(members),
        }
    }


def _id_parameter() -> Json:
    return path_parameter(
        "id", "The timer's id, a UUID.", {"type": "string", "format": "uuid"}, examples.TIMER_ID
    )
