"""The responses that operations of the v1 API have in common, each with an example."""

from msgspec import Struct
from msgspec.structs import replace

from duetime.api.http.auth import REFUSAL
from duetime.api.http.operation import CHALLENGE_HEADER, RETRY_HEADER, Examples, Response
from duetime.api.v1.answer_types import Details, ErrorAnswer
from duetime.api.v1.routes.examples import EXECUTE_AT
from duetime.domain.defaults import DEFAULT_MAX_PAYLOAD_BYTES
from duetime.domain.errors import TooManyPauses, TooManyTimers
from duetime.domain.limits import (
    MAX_API_KEYS,
    MAX_PAUSED_ENDPOINTS,
    MAX_RETRIES,
    MAX_RUNNING_OPERATIONS,
    MAX_SECRETS,
    MAX_V1_PAGE_TIMERS,
)
from duetime.domain.namespace import DEFAULT_SHARDS

_UNACCEPTABLE = "A value is not acceptable, or the namespace does not exist."


def _failure(
    status: str, description: str, error: str, message: str, details: Details | None = None
) -> Response:
    example = {
        "error": error,
        "message": message,
        "details": details or {},
        "timestamp": EXECUTE_AT,
    }
    return Response(status, description, ErrorAnswer, {error: example})


def _invalid(description: str, field: str, problem: str) -> Response:
    return _failure("400", description, "INVALID_INPUT", f"{field} {problem}", {"field": field})


INVALID = _invalid(_UNACCEPTABLE, "executeAt", "must be in the future")
INVALID_POLICY = _invalid(
    _UNACCEPTABLE, "retryPolicy.maxRetries", f"must be from 0 to {MAX_RETRIES}"
)
INVALID_FILTER = _invalid(_UNACCEPTABLE, "body", "must have a timerId, a filter, or all: true")
INVALID_LIMIT = _invalid(
    "A parameter is wrong or unknown, or the namespace does not exist.",
    "limit",
    f"must be a whole number from 1 to {MAX_V1_PAGE_TIMERS}",
)
INVALID_SHARDS = _invalid(
    "A value is not acceptable.",
    "numShards",
    f"was fixed at {DEFAULT_SHARDS} when the namespace was created and cannot be changed",
)
UNKNOWN_PARAMETER = _invalid(
    "The request has a query, which this operation does not read.",
    "limit",
    "is not a known parameter: this operation takes none",
)
NO_NAMESPACE = _failure(
    "400",
    "The namespace does not exist, or its name is not acceptable.",
    "NAMESPACE_NOT_FOUND",
    "namespace 'orders' does not exist",
    {"field": "namespace"},
)
NO_SUCH_NAMESPACE = _failure(
    "404",
    "There is no such namespace.",
    "NAMESPACE_NOT_FOUND",
    "namespace 'notifications' does not exist",
    {"field": "namespace"},
)
UNREADABLE_NAME = _invalid(
    "The name cannot be read, or the request has a query.",
    "namespace",
    "must be UTF-8, percent-encoded",
)
_UNAUTHORIZED = replace(
    _failure("401", "There is no key, or a wrong one.", "UNAUTHORIZED", REFUSAL),
    headers=CHALLENGE_HEADER,
)
_FORBIDDEN = _failure(
    "403",
    "The key may see this, but may not do it.",
    "FORBIDDEN",
    "this key lacks the role 'write'",
)
_TOO_MANY_REQUESTS = replace(
    _failure(
        "429",
        "The key sends too many requests, or too many at once; or too many wrong keys came from "
        "this address.",
        "TOO_MANY_REQUESTS",
        "this key sends too many requests",
    ),
    headers=RETRY_HEADER,
)
NOT_FOUND = _failure("404", "There is no such timer.", "TIMER_NOT_FOUND", "timer not found")
CONFLICT = _failure(
    "409",
    "A different timer with this id exists.",
    "TIMER_CONFLICT",
    "a timer with this id exists and differs in executeAt, payload",
    {"fields": ["executeAt", "payload"]},
)
NOT_PENDING = _failure(
    "409",
    "The timer is no longer pending.",
    "TIMER_NOT_PENDING",
    "cannot update timer with status 'completed'",
    {"status": "completed"},
)
NOT_CANCELABLE = _failure(
    "409",
    "The timer has fired, or an attempt is under way.",
    "TIMER_NOT_PENDING",
    "cannot cancel timer with status 'executing'",
    {"status": "executing"},
)
NOT_FAILED = _failure(
    "409",
    "The timer has not failed.",
    "TIMER_NOT_FAILED",
    "cannot redrive timer with status 'pending': only failed timers can be redriven",
    {"status": "pending"},
)
TOO_LARGE = _failure(
    "413",
    "The payload or the body is too large.",
    "PAYLOAD_TOO_LARGE",
    f"payload must be at most {DEFAULT_MAX_PAYLOAD_BYTES} bytes of JSON",
    {"field": "payload"},
)
INVALID_BULK_FILTER = _invalid(
    _UNACCEPTABLE, "filter", "must have a condition; for all timers say all: true"
)
UNREADABLE_OPERATION = _invalid(
    "The id cannot be read, or the request has a query.",
    "operationId",
    "must be UTF-8, percent-encoded",
)
NO_OPERATION = _failure(
    "404", "There is no such operation.", "OPERATION_NOT_FOUND", "operation not found"
)
OPERATION_ENDED = _failure(
    "409",
    "The operation has ended.",
    "OPERATION_NOT_RUNNING",
    "cannot abort operation with status 'completed'",
)
INVALID_KEY = _invalid("A value is not acceptable.", "expiresAt", "must be in the future")
INVALID_ROTATION = _invalid(
    "A value is not acceptable.", "overlap", 'must be a duration such as "24h" or "0s"'
)
UNREADABLE_KEY_ID = _invalid(
    "The id cannot be read, or the request has a query.",
    "keyId",
    "must be UTF-8, percent-encoded",
)
NO_KEY = _failure("404", "There is no such key.", "KEY_NOT_FOUND", "key not found")
KEY_NOT_ACTIVE = _failure(
    "409",
    "The key has expired or was rotated before, or there are too many keys.",
    "KEY_NOT_ACTIVE",
    "the key has expired: create another one",
)
TOO_MANY_KEYS = _failure(
    "409",
    "There are too many keys.",
    "TOO_MANY_KEYS",
    f"there are {MAX_API_KEYS:,} keys, which is the most: revoke one first",
)
INVALID_ENDPOINT = _invalid(
    "A value is not acceptable.",
    "endpoint",
    "must be an origin such as https://api.example.com: no user, path, query or fragment",
)
NOT_PAUSED = _failure(
    "404",
    "The endpoint is not paused.",
    "ENDPOINT_NOT_PAUSED",
    "https://app.example.com:443 is not paused",
)
TOO_MANY_PAUSES = _failure(
    "409",
    "Too many endpoints are paused.",
    "TOO_MANY_PAUSES",
    TooManyPauses(MAX_PAUSED_ENDPOINTS).message,
)
UNDELETABLE = _invalid(
    "The namespace is `default`, or a parameter is wrong.",
    "namespace",
    "'default' cannot be deleted",
)
NOT_EMPTY = _failure(
    "409",
    "The namespace has timers that are pending or executing.",
    "NAMESPACE_NOT_EMPTY",
    "namespace 'orders' has timers that are pending or executing (12): cancel them first, or "
    "delete it with force=true",
)
TOO_MANY_OPERATIONS = replace(
    _failure(
        "429",
        "Too many operations are running.",
        "TOO_MANY_OPERATIONS",
        f"{MAX_RUNNING_OPERATIONS} operations are running: wait until one has ended, or abort one",
    ),
    headers=RETRY_HEADER,
)
INVALID_SECRET = _invalid(
    "A value is not acceptable.", "expireOthersAfter", "must be from 0s to 30d"
)
NO_SECRET = _failure(
    "404", "There is no such secret, or no such namespace.", "SECRET_NOT_FOUND", "secret not found"
)
CONFIGURED_SECRET = _failure(
    "409",
    "The secret is one of the settings.",
    "SECRET_CONFIGURED",
    "secret 'configured-1' is configured: take it out of WEBHOOK_SECRETS and restart the service",
)
TOO_MANY_SECRETS = _failure(
    "409",
    "The namespace has too many secrets.",
    "TOO_MANY_SECRETS",
    f"namespace 'notifications' has {MAX_SECRETS} secrets: revoke one first",
)
TOO_MANY_TIMERS = replace(
    _failure(
        "429",
        "The namespace has as many unfinished timers as its `maxPending` allows.",
        "TOO_MANY_TIMERS",
        TooManyTimers("notifications", 1_000_000).message.replace("max_pending", "maxPending"),
        {"field": "namespace", "maxPending": 1_000_000},
    ),
    headers=RETRY_HEADER,
)
_INTERNAL = _failure("500", "An unexpected error.", "INTERNAL_ERROR", "internal error")
_UNAVAILABLE = replace(
    _failure(
        "503",
        "The store is not available now, or the bodies of other requests take all memory for "
        "bodies. The request may be sent again.",
        "SERVICE_UNAVAILABLE",
        "the database is not available, try again later",
    ),
    headers=RETRY_HEADER,
)
NO_ROOM = replace(
    _failure(
        "507",
        "The disk is nearly full, so nothing new is accepted. Accepted timers fire all the same.",
        "INSUFFICIENT_STORAGE",
        "the disk is nearly full: 5242880 bytes are free, and 67108864 are reserved",
    ),
    headers=RETRY_HEADER,
)


def ok(description: str, schema: type[Struct], examples: Examples) -> Response:
    return Response("200", description, schema, examples)


def with_failures(success: Response, *own: Response) -> tuple[Response, ...]:
    """The responses of an operation, with the failures that every operation has."""
    common = (_UNAUTHORIZED, _FORBIDDEN, _TOO_MANY_REQUESTS, _INTERNAL, _UNAVAILABLE)
    described = {each.status: each for each in (*common, *own)}
    return success, *(described[status] for status in sorted(described))
