"""The operations of the platform API, and the health check: every route is declared here."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from duetime.api.http.auth import REFUSAL
from duetime.api.http.operation import (
    CHALLENGE_HEADER,
    RETRY_HEADER,
    SERVICE,
    Body,
    Callback,
    Operation,
    OperationGroup,
    Parameter,
    Response,
    Tag,
    links,
)
from duetime.api.http.secrets_parameter import SECRETS
from duetime.api.platform import examples
from duetime.api.platform.envelope import Code
from duetime.api.platform.health import Health
from duetime.api.platform.probes import Probes
from duetime.api.platform.query import PARAMETERS
from duetime.api.platform.timers import PlatformTimers
from duetime.api.platform.types import (
    CanceledTimerEnvelope,
    ChangedTimerEnvelope,
    CreateTimerBody,
    Error,
    HealthStatusEnvelope,
    ProbeEnvelope,
    TimerDetailEnvelope,
    TimerListEnvelope,
    TimerSummaryEnvelope,
    UpdateTimerBody,
)
from duetime.domain.defaults import (
    DEFAULT_MAX_BODY_BYTES,
    DEFAULT_MAX_PAYLOAD_BYTES,
    DEFAULT_MIN_DELAY_SECONDS,
)
from duetime.domain.errors import TooManyTimers
from duetime.domain.limits import MAX_DELAY_YEARS, MAX_PLATFORM_PAGE_TIMERS
from duetime.domain.namespace import DEFAULT_NAMESPACE

TIMERS = Tag(
    "Platform timers",
    "Every answer has the form `{code, message, data}`. Code 0 is success, 1 an unexpected error, "
    "2 invalid input, 3 not found, 4 unauthorized.",
)

_ID = Parameter(
    "id",
    "The timer's id, a UUID.",
    {"type": "string", "format": "uuid"},
    place="path",
    example=examples.TIMER_ID,
)


def _success(status: str, description: str, schema: type[Struct], example: object) -> Response:
    return Response(status, description, schema, {"Success": example})


def _failure(status: str, description: str, code: Code, message: str) -> Response:
    example = {"code": int(code), "message": message, "data": None}
    return Response(status, description, Error, {"Error": example})


UNAUTHORIZED = replace(
    _failure("401", "There is no key, or a wrong one.", Code.UNAUTHORIZED, REFUSAL),
    headers=CHALLENGE_HEADER,
)
FORBIDDEN = _failure(
    "403",
    "The key may see this, but may not do it.",
    Code.UNAUTHORIZED,
    "this key lacks the role 'write'",
)
TOO_MANY = replace(
    _failure(
        "429",
        "The key sends too many requests, or too many at once; or too many wrong keys came from "
        "this address.",
        Code.UNEXPECTED,
        "this key sends too many requests",
    ),
    headers=RETRY_HEADER,
)
_NOT_FOUND = _failure("404", "There is no such timer.", Code.NOT_FOUND, "timer not found")
INTERNAL = _failure("500", "An unexpected error.", Code.UNEXPECTED, "internal error")
UNAVAILABLE = Response(
    "503",
    "The store is not available now, the disk is nearly full, so that nothing new is accepted, or "
    "the bodies of other requests take all memory for bodies. The request may be sent again.",
    Error,
    {
        "Error": {
            "code": int(Code.UNEXPECTED),
            "message": "the database is not available, try again later",
            "data": None,
        }
    },
    headers=RETRY_HEADER,
)


def _failures_of_one(message: str) -> tuple[Response, ...]:
    """The failures of operations on one timer. `message` is the example for 400."""
    invalid = _failure(
        "400",
        "A value is not acceptable, or the timer's status does not allow this.",
        Code.VALIDATION,
        message,
    )
    return invalid, UNAUTHORIZED, FORBIDDEN, _NOT_FOUND, TOO_MANY, INTERNAL, UNAVAILABLE


_CALLBACK = Callback(
    "{$request.body#/callback/url}",
    "The callback of a platform timer",
    "At the timer's instant Duetime sends a POST to the callback's URL, with the payload as the "
    "body (an empty one without a payload) and the callback's headers. Any 2xx answer completes "
    "the timer. Anything else is a failure, which is retried if there is a `retry_policy`.",
    Body({}, {"Payload": examples.PAYLOAD}, required=False),
    (
        Response("2XX", "The timer is completed."),
        Response("default", "The attempt failed."),
    ),
)

CREATE_TIMER = Operation(
    id="createTimer",
    method="POST",
    path="/timers",
    audit="timer.create",
    handler=PlatformTimers.create,
    tag=TIMERS,
    summary="Create a timer",
    description="The answer comes once the timer is durable. The instant is given as `execute_at`, "
    "or as the duration `execute_in`, which the server adds to its own clock. It must be at least "
    f"`MIN_DELAY_SECONDS` ({DEFAULT_MIN_DELAY_SECONDS} unless configured) and at most "
    f"{MAX_DELAY_YEARS} years ahead.",
    body=Body(
        CreateTimerBody, {"HTTP callback": examples.CREATE, "NATS callback": examples.CREATE_NATS}
    ),
    responses=(
        Response(
            "201",
            "The timer was created.",
            TimerSummaryEnvelope,
            {"Success": examples.CREATED},
            links=links(
                {"id": "$response.body#/data/id"},
                get="getTimer",
                update="updateTimer",
                cancel="cancelTimer",
            ),
        ),
        _success(
            "200",
            "The timer that an equal request with this idempotency key created.",
            TimerSummaryEnvelope,
            examples.EXISTING,
        ),
        _failure(
            "400", "A value is not acceptable.", Code.VALIDATION, "execute_at must be in the future"
        ),
        UNAUTHORIZED,
        FORBIDDEN,
        _failure(
            "409",
            "The idempotency key belongs to another timer.",
            Code.VALIDATION,
            "idempotency_key was used for a different timer",
        ),
        _failure(
            "413",
            "The payload or the body is too large.",
            Code.VALIDATION,
            f"callback.payload must be at most {DEFAULT_MAX_PAYLOAD_BYTES} bytes of JSON",
        ),
        replace(
            _failure(
                "429",
                "The namespace has as many unfinished timers as its `maxPending` allows, or the "
                "key sends too many requests.",
                Code.VALIDATION,
                TooManyTimers(DEFAULT_NAMESPACE, 1_000_000).message,
            ),
            headers=RETRY_HEADER,
        ),
        INTERNAL,
        UNAVAILABLE,
    ),
    callback=_CALLBACK,
)

_TIMER_OPERATIONS: tuple[Operation[PlatformTimers], ...] = (
    CREATE_TIMER,
    Operation(
        id="listTimers",
        method="GET",
        path="/timers",
        handler=PlatformTimers.page,
        tag=TIMERS,
        summary="List timers",
        parameters=PARAMETERS,
        responses=(
            _success("200", "A page of timers.", TimerListEnvelope, examples.LIST),
            _failure(
                "400",
                "A parameter is wrong.",
                Code.VALIDATION,
                f"limit must be a whole number from 1 to {MAX_PLATFORM_PAGE_TIMERS}",
            ),
            UNAUTHORIZED,
            FORBIDDEN,
            TOO_MANY,
            INTERNAL,
            UNAVAILABLE,
        ),
    ),
    Operation(
        id="getTimer",
        method="GET",
        path="/timers/{id}",
        handler=PlatformTimers.get,
        tag=TIMERS,
        summary="Get a timer",
        parameters=(_ID, SECRETS),
        responses=(
            _success("200", "The timer.", TimerDetailEnvelope, examples.DETAIL),
            *_failures_of_one("id must be a UUID"),
        ),
    ),
    Operation(
        id="updateTimer",
        method="PUT",
        path="/timers/{id}",
        audit="timer.update",
        handler=PlatformTimers.update,
        tag=TIMERS,
        summary="Change a pending timer",
        description="After an answer of 200 the old version never fires. A value that is sent back "
        "as `[redacted]` stays as it is stored.",
        parameters=(_ID,),
        body=Body(UpdateTimerBody, {"New instant": examples.UPDATE}),
        responses=(
            _success("200", "The changed timer.", ChangedTimerEnvelope, examples.UPDATED),
            *_failures_of_one("cannot update timer with status 'completed'"),
            _failure(
                "413",
                "The payload or the body is too large.",
                Code.VALIDATION,
                f"body must be at most {DEFAULT_MAX_BODY_BYTES} bytes",
            ),
        ),
    ),
    Operation(
        id="cancelTimer",
        method="DELETE",
        path="/timers/{id}",
        audit="timer.cancel",
        handler=PlatformTimers.cancel,
        tag=TIMERS,
        summary="Cancel a pending timer",
        description="After an answer of 200 the timer never fires. Canceling a canceled timer "
        "again succeeds.",
        parameters=(_ID,),
        responses=(
            _success("200", "The timer is canceled.", CanceledTimerEnvelope, examples.CANCELED),
            *_failures_of_one("cannot cancel timer with status 'completed'"),
        ),
    ),
)

_PROBES: tuple[Operation[Probes], ...] = (
    Operation(
        id="alive",
        method="GET",
        path="/livez",
        handler=Probes.alive,
        needs_key=False,
        tag=SERVICE,
        summary="Whether the process works",
        description="Needs no key, and does not ask the store: a process whose store is away, or "
        "that has too many connections, need not be restarted.",
        responses=(_success("200", "The process works.", ProbeEnvelope, examples.ALIVE),),
    ),
    Operation(
        id="ready",
        method="GET",
        path="/readyz",
        handler=Probes.ready,
        needs_key=False,
        tag=SERVICE,
        summary="Whether the process should get requests",
        description="Needs no key. The store is asked at most once a second.",
        responses=(
            _success("200", "The service takes requests.", ProbeEnvelope, examples.READY),
            Response(
                "503",
                "The service starts or stops, the store does not answer, or the engine does not "
                "run.",
                ProbeEnvelope,
                {"The store is away": examples.NOT_READY},
                headers=RETRY_HEADER,
            ),
        ),
    ),
)

_HEALTH_OPERATIONS: tuple[Operation[Health], ...] = (
    Operation(
        id="health",
        method="GET",
        path="/healthz",
        handler=Health.check,
        needs_key=False,
        tag=SERVICE,
        summary="Health of the service",
        description="Needs no key. Answers within 5 seconds.",
        responses=(
            _success("200", "The service is healthy.", HealthStatusEnvelope, examples.HEALTHY),
            Response(
                "500",
                "The store does not answer, the disk is nearly full, or the engine does not run.",
                HealthStatusEnvelope,
                {"Degraded": examples.DEGRADED},
            ),
        ),
    ),
)

PLATFORM: tuple[OperationGroup[Any], ...] = (OperationGroup(PlatformTimers, _TIMER_OPERATIONS),)
HEALTH: tuple[OperationGroup[Any], ...] = (
    OperationGroup(Probes, _PROBES),
    OperationGroup(Health, _HEALTH_OPERATIONS),
)
