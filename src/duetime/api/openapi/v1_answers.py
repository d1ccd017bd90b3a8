"""What the operations of the v1 API answer, in the OpenAPI document."""

from collections.abc import Mapping

from msgspec import Struct

from duetime.api.openapi.parts import Json, content, reference
from duetime.api.openapi.v1_examples import failure
from duetime.api.v1.types import Details


class Failure(Struct, frozen=True):
    """A refusal, and the example of it."""

    status: int
    description: str
    error: str
    message: str
    details: Details = {}


INVALID = Failure(
    400,
    "Something in the request is not acceptable, or the namespace does not exist.",
    "INVALID_INPUT",
    "executeAt must be in the future",
    {"field": "executeAt"},
)
INVALID_POLICY = Failure(
    400,
    INVALID.description,
    "INVALID_INPUT",
    "retryPolicy.maxRetries must be from 0 to 100",
    {"field": "retryPolicy.maxRetries"},
)
UNKNOWN_PARAMETER = Failure(
    400,
    "There is a query, which this path does not take.",
    "INVALID_INPUT",
    "limit is not a known parameter: there are none",
    {"field": "limit"},
)
INVALID_LIMIT = Failure(
    400,
    "A parameter is wrong or not known, or the namespace does not exist.",
    "INVALID_INPUT",
    "limit must be a whole number from 1 to 1000",
    {"field": "limit"},
)
INVALID_FILTER = Failure(
    400,
    INVALID.description,
    "INVALID_INPUT",
    "body must have a timerId, a filter, or all: true",
    {"field": "body"},
)
INVALID_SHARDS = Failure(
    400,
    "Something in the request is not acceptable.",
    "INVALID_INPUT",
    "numShards is 16 since the namespace was created, and stays so",
    {"field": "numShards"},
)
NO_NAMESPACE = Failure(
    400,
    "The namespace does not exist, or its name is not acceptable.",
    "NAMESPACE_NOT_FOUND",
    "namespace 'orders' does not exist",
    {"field": "namespace"},
)
UNAUTHORIZED = Failure(
    401,
    "The header X-API-Key is missing or wrong.",
    "UNAUTHORIZED",
    "missing or invalid X-API-Key",
)
NOT_FOUND = Failure(404, "There is no such timer.", "TIMER_NOT_FOUND", "timer not found")
CONFLICT = Failure(
    409,
    "A timer with this id exists, and it is a different one.",
    "TIMER_CONFLICT",
    "a timer with this id exists and differs in executeAt, payload",
    {"fields": ["executeAt", "payload"]},
)
NOT_PENDING = Failure(
    409,
    "The timer is not pending any more.",
    "TIMER_NOT_PENDING",
    "cannot update timer with status 'completed'",
    {"status": "completed"},
)
NOT_FAILED = Failure(
    409,
    "The timer has not failed.",
    "TIMER_NOT_FAILED",
    "cannot redrive timer with status 'pending': only failed ones",
    {"status": "pending"},
)
TOO_LARGE = Failure(
    413,
    "The payload or the body is too large.",
    "PAYLOAD_TOO_LARGE",
    "payload must be at most 262144 bytes of JSON",
    {"field": "payload"},
)
INTERNAL = Failure(
    500, "The service could not do its work now.", "INTERNAL_ERROR", "internal error"
)

NO_CONTENT: Json = {"description": "The timer is gone: it never fires, and its id is free again."}


def ok(
    description: str, schema: str, examples: Mapping[str, object], links: Json | None = None
) -> Json:
    answer = {"description": description, "content": content(reference(schema), examples)}
    return answer if links is None else {**answer, "links": links}


def failures(*wanted: Failure) -> Json:
    return {
        str(each.status): {
            "description": each.description,
            "content": content(
                reference("V1ErrorAnswer"),
                {each.error: failure(each.error, each.message, each.details)},
            ),
        }
        for each in sorted((*wanted, UNAUTHORIZED, INTERNAL), key=lambda each: each.status)
    }
