"""The part of the OpenAPI document that is about the timers of the v1 API."""

from duetime.api.http.constraints import INSTANT, KEY_LENGTH, KEY_TEXT
from duetime.api.openapi import v1_answers as answers
from duetime.api.openapi import v1_examples as examples
from duetime.api.openapi.parts import (
    Json,
    choice_parameter,
    content,
    json_body,
    number_parameter,
    path_parameter,
    query_parameter,
)
from duetime.api.openapi.v1_answers import NO_CONTENT, failures, ok
from duetime.api.openapi.v1_callback import callbacks
from duetime.api.platform.query import ORDERS, STATUSES
from duetime.api.v1.listing import DEFAULT_LIMIT, MAX_LIMIT
from duetime.api.v1.types import EXISTENCE_HEADER
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.store import Existence

TAG = "Timers v1"
DESCRIPTION = (
    "Timers in namespaces, with ids of the client's own. A timer is named by the path, or in the "
    "body of the operations that end in a verb. Errors have the form `{error, message, details, "
    "timestamp}`: `error` is a code for programs, `details.field` the member or parameter at "
    "fault, `details.fields` what a timer that exists differs in, `details.status` the status that "
    "a timer is in. Unknown members and parameters are refused."
)


_ENCODED = (
    "It may contain any characters, percent-encoded in UTF-8; a slash is `%2F`. Most clients "
    "take `.` and `..` for steps in the path: name such ones in the body instead, as in "
    "`/api/v1/timers/get`."
)
_NAMESPACE: Json = {"type": "string", **KEY_LENGTH}
_INSTANT: Json = {"type": "string", **INSTANT}
_NDJSON = "application/x-ndjson"
_GROUP_ID = query_parameter("groupId", "Another word for `namespace`.", _NAMESPACE)


def paths() -> dict[str, Json]:
    return {
        "/api/v1/timers": {"post": _create(), "get": _list()},
        "/api/v1/timers/{namespace}/{timerId}": {
            "parameters": _key_parameters(),
            "get": _get(),
            "put": _update(),
            "delete": _delete(),
        },
        "/api/v1/timers/create": {"post": _upsert()},
        "/api/v1/timers/get": {"post": _get_selected()},
        "/api/v1/timers/update": {"post": _update_selected()},
        "/api/v1/timers/delete": {"post": _delete_selected()},
        "/api/v1/timers/batch": {"post": _batch()},
        "/api/v1/timers/import": {"post": _import()},
        "/api/v1/timers/redrive": {"post": _redrive()},
    }


def _create() -> Json:
    return {
        "operationId": "createTimerV1",
        "tags": [TAG],
        "summary": "Create a timer",
        "description": "Answered once the timer is durable. Repeating the same request is safe: "
        "it is answered with the timer that exists. If that is a different one, `details.fields` "
        "names what differs. `executeAt` may be at most 100 years ahead.",
        "requestBody": json_body(
            "V1CreateBody", {"Full": examples.CREATE, "Shortest": examples.CREATE_SHORT}
        ),
        "responses": {
            "200": {
                **ok(
                    "The timer, new or as an equal request made it.",
                    "V1TimerAnswer",
                    {"Timer": examples.TIMER},
                    _links(),
                ),
                "headers": _existence(Existence.CREATED, Existence.EXISTING),
            },
            **failures(answers.INVALID_POLICY, answers.CONFLICT, answers.TOO_LARGE),
        },
        "callbacks": callbacks(),
    }


def _upsert() -> Json:
    return {
        "operationId": "upsertTimerV1",
        "tags": [TAG],
        "summary": "Create a timer, or replace a pending one",
        "description": "A pending timer with the same id is replaced: its old version never "
        "fires. One that is not pending any more is answered if it is equal, and refused if not.",
        "requestBody": json_body("V1CreateBody", {"Full": examples.CREATE}),
        "responses": {
            "200": {
                **ok(
                    "The timer as it is now.", "V1TimerAnswer", {"Timer": examples.TIMER}, _links()
                ),
                "headers": _existence(*Existence),
            },
            **failures(answers.INVALID, answers.NOT_PENDING, answers.TOO_LARGE),
        },
        "callbacks": callbacks(),
    }


def _list() -> Json:
    return {
        "operationId": "listTimersV1",
        "tags": [TAG],
        "summary": "List the timers of a namespace",
        "description": "In the order of `executeAt`. A page that is not the last has a "
        "`nextCursor`: repeat the request with it to get the page that follows. `limit` may be "
        "another one then, all else stays.",
        "parameters": [
            query_parameter(
                "namespace",
                "The namespace; it must exist.",
                {**_NAMESPACE, "default": DEFAULT_NAMESPACE},
            ),
            _GROUP_ID,
            choice_parameter("status", "Only timers with this status.", list(STATUSES)),
            query_parameter(
                "dueAfter", "Only timers with an `executeAt` at or after this instant.", _INSTANT
            ),
            query_parameter(
                "dueBefore", "Only timers with an `executeAt` before this instant.", _INSTANT
            ),
            query_parameter("cursor", "The `nextCursor` of the page before.", {"type": "string"}),
            number_parameter("limit", "Timers on a page.", 1, MAX_LIMIT, DEFAULT_LIMIT),
            choice_parameter("order", "Which end comes first.", list(ORDERS), "asc"),
        ],
        "responses": {
            "200": ok(
                "A page of timers.",
                "V1TimerPage",
                {"A page": examples.PAGE, "The last page": examples.LAST_PAGE},
            ),
            **failures(answers.INVALID_LIMIT),
        },
    }


def _get() -> Json:
    return {
        "operationId": "getTimerV1",
        "tags": [TAG],
        "summary": "Get a timer",
        "responses": {
            "200": ok(
                "The timer.",
                "V1TimerAnswer",
                {"Pending": examples.TIMER, "Failed": examples.FAILED_TIMER},
            ),
            **failures(answers.NO_NAMESPACE, answers.NOT_FOUND),
        },
    }


def _get_selected() -> Json:
    return {
        "operationId": "getSelectedTimerV1",
        "tags": [TAG],
        "summary": "Get a timer that the body names",
        "requestBody": json_body("V1SelectionBody", {"Selection": examples.SELECTION}),
        "responses": {
            "200": ok("The timer.", "V1TimerAnswer", {"Pending": examples.TIMER}),
            **failures(answers.NO_NAMESPACE, answers.NOT_FOUND, answers.TOO_LARGE),
        },
    }


def _update() -> Json:
    return {
        "operationId": "updateTimerV1",
        "tags": [TAG],
        "summary": "Change a pending timer",
        "description": "What is absent stays as it is. Once this is answered with 200, the old "
        "version never fires.",
        "requestBody": json_body("V1UpdateBody", {"New instant": examples.UPDATE}),
        "responses": _changed(),
    }


def _update_selected() -> Json:
    return {
        "operationId": "updateSelectedTimerV1",
        "tags": [TAG],
        "summary": "Change a pending timer that the body names",
        "description": "At least one member besides those that name the timer is needed.",
        "requestBody": json_body(
            "V1SelectedUpdateBody", {"New instant": examples.SELECTION | examples.UPDATE}
        ),
        "responses": _changed(),
    }


def _changed() -> Json:
    return {
        "200": ok("The changed timer.", "V1TimerAnswer", {"Changed": examples.UPDATED}),
        **failures(answers.INVALID, answers.NOT_FOUND, answers.NOT_PENDING, answers.TOO_LARGE),
    }


def _delete() -> Json:
    return {
        "operationId": "deleteTimerV1",
        "tags": [TAG],
        "summary": "Delete a pending timer",
        "responses": {
            "204": NO_CONTENT,
            **failures(answers.NO_NAMESPACE, answers.NOT_FOUND, answers.NOT_PENDING),
        },
    }


def _delete_selected() -> Json:
    return {
        "operationId": "deleteSelectedTimerV1",
        "tags": [TAG],
        "summary": "Delete a pending timer that the body names",
        "requestBody": json_body("V1SelectionBody", {"Selection": examples.SELECTION}),
        "responses": {
            "204": NO_CONTENT,
            **failures(
                answers.NO_NAMESPACE, answers.NOT_FOUND, answers.NOT_PENDING, answers.TOO_LARGE
            ),
        },
    }


def _batch() -> Json:
    return {
        "operationId": "createTimersV1",
        "tags": [TAG],
        "summary": "Create up to 1,000 timers",
        "description": "Each is created or refused by itself: what is wrong with one is told in "
        "its result, and the others are created. The body may be eight times as large as others.",
        "requestBody": json_body("V1BatchBody", {"One is wrong": examples.BATCH}),
        "responses": {
            "200": ok(
                "What became of each.", "V1BatchAnswer", {"One is wrong": examples.BATCH_RESULTS}
            ),
            **failures(answers.INVALID, answers.TOO_LARGE),
        },
    }


def _import() -> Json:
    lines = {
        "type": "string",
        "format": "binary",
        "description": "One JSON object per line, each as in the body of a create "
        "(`V1CreateBody`), without line breaks of its own.",
    }
    given = {"Two lines": examples.IMPORT}
    return {
        "operationId": "importTimersV1",
        "tags": [TAG],
        "summary": "Create any number of timers",
        "description": "A stream of any length, one JSON object per line. Blank lines are "
        "skipped. Timers whose instant has passed are accepted, and due at once. Sending the "
        "same stream again is safe.",
        "parameters": [
            query_parameter("namespace", "For lines that do not name one.", _NAMESPACE),
            _GROUP_ID,
        ],
        "requestBody": {
            "required": True,
            "content": {
                **content(lines, given, _NDJSON),
                **content(lines, given, "application/octet-stream"),
            },
        },
        "responses": {
            "200": ok(
                "What became of the lines.",
                "V1ImportAnswer",
                {"One is wrong": examples.IMPORTED},
            ),
            **failures(answers.NO_NAMESPACE),
        },
    }


def _redrive() -> Json:
    return {
        "operationId": "redriveTimersV1",
        "tags": [TAG],
        "summary": "Fire failed timers once more",
        "description": "One timer by its `timerId`, or all failed ones of the namespace that "
        "match: then at least one filter, or `all`, is needed. They are pending again and due at "
        "once, as new firings. With `dryRun` they are only counted.",
        "requestBody": json_body(
            "V1RedriveBody",
            {
                "Count them": examples.REDRIVE_COUNT,
                "One": examples.REDRIVE_ONE,
                "All": examples.REDRIVE_ALL,
            },
        ),
        "responses": {
            "200": ok(
                "How many there were.",
                "V1RedriveAnswer",
                {
                    "Counted": {"matched": 12, "redriven": 0},
                    "Redriven": {"matched": 12, "redriven": 12},
                },
            ),
            **failures(
                answers.INVALID_FILTER, answers.NOT_FOUND, answers.NOT_FAILED, answers.TOO_LARGE
            ),
        },
    }


def _key_parameters() -> list[Json]:
    return [
        path_parameter(
            "namespace",
            f"The timer's namespace. {_ENCODED}",
            _NAMESPACE,
            examples.NAMESPACE,
        ),
        path_parameter(
            "timerId",
            f"The timer's id. {_ENCODED}",
            {"type": "string", **KEY_TEXT},
            examples.TIMER_ID,
        ),
    ]


def _existence(*possible: Existence) -> Json:
    return {
        EXISTENCE_HEADER: {
            "description": "Whether the timer is new, was there as an equal request made it, or "
            "took the place of a pending one.",
            "required": True,
            "schema": {"type": "string", "enum": [existence.value for existence in possible]},
        }
    }


def _links() -> Json:
    """Where a client goes from a timer that was created."""
    operations = {"get": "getTimerV1", "update": "updateTimerV1", "delete": "deleteTimerV1"}
    key = {"namespace": "$response.body#/namespace", "timerId": "$response.body#/id"}
    return {
        name: {"operationId": operation, "parameters": key}
        for name, operation in operations.items()
    }
