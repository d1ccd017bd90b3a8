"""The operations of the v1 API on timers."""

from duetime.api.http.operation import Body, Json, Operation, Parameter, Response, Tag, links
from duetime.api.http.secrets_parameter import SECRETS
from duetime.api.http.types import KEY_LENGTH, KEY_TEXT
from duetime.api.v1.answer_types import (
    EXISTENCE_HEADER,
    BatchAnswer,
    RedriveAnswer,
    TimerAnswer,
    TimerPage,
)
from duetime.api.v1.listing import LIST_PARAMETERS
from duetime.api.v1.request_types import (
    BatchBody,
    CreateBody,
    RedriveBody,
    SelectedUpdateBody,
    SelectionBody,
    UpdateBody,
)
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.callback import TIMER_CALLBACK
from duetime.api.v1.routes.responses import ok, with_failures
from duetime.api.v1.timers import TimersV1
from duetime.domain.limits import BATCH_BODY_FACTOR, MAX_BATCH_TIMERS, MAX_DELAY_YEARS
from duetime.domain.security.access import Role
from duetime.ports.store import Existence

TIMERS = Tag(
    "Timers v1",
    "Timers in namespaces, with ids that the client chooses. Errors have the form `{error, "
    "message, details, timestamp}`: `error` is a code for programs, `details.field` the member or "
    "parameter at fault, `details.fields` the members in which an existing timer differs, "
    "`details.status` the timer's status. Unknown members and parameters are refused.",
)
TIMERS_NAMED_IN_THE_BODY = Tag(
    "Timers v1, named in the body",
    "The same with the timer named in the body, for clients that prefer it and for ids that do not "
    "survive in a path. Only the create differs: it replaces a pending timer.",
)
_ENCODED = (
    "Any characters are allowed, percent-encoded in UTF-8; a slash is `%2F`. Most clients take `.` "
    "and `..` for steps in the path, so give these in the body, as in `/api/v1/timers/get`."
)
KEY = (
    Parameter(
        "namespace",
        f"The timer's namespace. {_ENCODED}",
        {"type": "string", **KEY_LENGTH},
        place="path",
        example=examples.NAMESPACE,
    ),
    Parameter(
        "timerId",
        f"The timer's id. {_ENCODED}",
        {"type": "string", **KEY_TEXT},
        place="path",
        example=examples.TIMER_ID,
        takes_slashes=True,
    ),
)
_SELECTION = Body(SelectionBody, {"Selection": examples.SELECTION})
_DELETED = Response(
    "204",
    "The timer is gone: it never fires, and its id is free again. A timer of the bus is canceled "
    "instead and keeps its id.",
)
_LINKS = links(
    {"namespace": "$response.body#/namespace", "timerId": "$response.body#/id"},
    get="getTimerV1",
    update="updateTimerV1",
    cancel="cancelTimerV1",
    delete="deleteTimerV1",
)


def _created(description: str, *existences: Existence) -> Response:
    header: Json = {
        "description": "Whether the timer is new, existed because of an equal request, or replaced "
        "a pending one.",
        "required": True,
        "schema": {"type": "string", "enum": [existence.value for existence in existences]},
    }
    return Response(
        "200",
        description,
        TimerAnswer,
        {"Timer": examples.TIMER},
        headers={EXISTENCE_HEADER: header},
        links=_LINKS,
    )


_CHANGED = with_failures(
    ok("The changed timer.", TimerAnswer, {"Changed": examples.UPDATED}),
    failures.INVALID,
    failures.NOT_FOUND,
    failures.NOT_PENDING,
    failures.TOO_LARGE,
    failures.NO_ROOM,
)

_CANCELED = ok("The canceled timer.", TimerAnswer, {"Canceled": examples.CANCELED_TIMER})

TIMER_OPERATIONS: tuple[Operation[TimersV1], ...] = (
    Operation(
        id="createTimerV1",
        method="POST",
        path="/api/v1/timers",
        audit="timer.create",
        handler=TimersV1.create,
        tag=TIMERS,
        summary="Create a timer",
        description="The answer comes once the timer is durable. Repeating a request is safe: the "
        "answer is the existing timer, even if it has fired or was canceled since. If a different "
        "timer has the id, the request is refused and `details.fields` names the members that "
        f"differ. The instant may be at most {MAX_DELAY_YEARS} years ahead. With `executeIn` the "
        "server adds the duration to its own clock, and a repeat is compared by the duration.",
        body=Body(
            CreateBody, {"In 30 minutes": examples.CREATE_SHORT, "All members": examples.CREATE}
        ),
        responses=with_failures(
            _created(
                "The timer, new or as an equal request created it.",
                Existence.CREATED,
                Existence.EXISTING,
            ),
            failures.INVALID_POLICY,
            failures.CONFLICT,
            failures.TOO_LARGE,
            failures.TOO_MANY_TIMERS,
            failures.NO_ROOM,
        ),
        callback=TIMER_CALLBACK,
    ),
    Operation(
        id="listTimersV1",
        method="GET",
        path="/api/v1/timers",
        handler=TimersV1.page,
        tag=TIMERS,
        summary="List the timers of a namespace",
        description="In the order of `executeAt`. Every page but the last has a `nextCursor`: "
        "repeat the request with it to get the next page. `limit` may change from page to page, "
        "the other parameters may not.",
        parameters=LIST_PARAMETERS,
        responses=with_failures(
            ok(
                "A page of timers.",
                TimerPage,
                {"A page": examples.PAGE, "The last page": examples.LAST_PAGE},
            ),
            failures.INVALID_LIMIT,
        ),
    ),
    Operation(
        id="getTimerV1",
        method="GET",
        path="/api/v1/timers/{namespace}/{timerId}",
        handler=TimersV1.get,
        tag=TIMERS,
        summary="Get a timer",
        parameters=(*KEY, SECRETS),
        responses=with_failures(
            ok(
                "The timer.",
                TimerAnswer,
                {"Pending": examples.TIMER, "Failed": examples.FAILED_TIMER},
            ),
            failures.NO_NAMESPACE,
            failures.NOT_FOUND,
        ),
    ),
    Operation(
        id="updateTimerV1",
        method="PUT",
        path="/api/v1/timers/{namespace}/{timerId}",
        audit="timer.update",
        handler=TimersV1.update,
        tag=TIMERS,
        summary="Change a pending timer",
        description="Absent members stay as they are, and so do values that are sent back as "
        "`[redacted]`. After an answer of 200 the old version never fires.",
        parameters=KEY,
        body=Body(UpdateBody, {"New instant": examples.UPDATE}),
        responses=_CHANGED,
    ),
    Operation(
        id="cancelTimerV1",
        method="POST",
        path="/api/v1/timers/{namespace}/{timerId}/cancel",
        audit="timer.cancel",
        handler=TimersV1.cancel,
        tag=TIMERS,
        summary="Cancel a pending timer",
        description="After an answer of 200 the timer never fires. It stays, as `canceled`, for as "
        "long as finished timers are kept: canceling it again succeeds, and repeating its create "
        "returns the canceled timer. Use this where a create may be delivered twice; `DELETE` "
        "forgets the timer instead. A body is not read.",
        parameters=KEY,
        responses=with_failures(
            _CANCELED,
            failures.NO_NAMESPACE,
            failures.NOT_FOUND,
            failures.NOT_CANCELABLE,
            failures.NO_ROOM,
        ),
    ),
    Operation(
        id="deleteTimerV1",
        method="DELETE",
        path="/api/v1/timers/{namespace}/{timerId}",
        audit="timer.delete",
        handler=TimersV1.delete,
        tag=TIMERS,
        summary="Delete a pending timer",
        description="Forgets the timer. A create that is delivered once more afterwards makes the "
        "timer anew; cancel it instead if that may happen.",
        parameters=KEY,
        responses=with_failures(
            _DELETED,
            failures.NO_NAMESPACE,
            failures.NOT_FOUND,
            failures.NOT_PENDING,
            failures.NO_ROOM,
        ),
    ),
    Operation(
        id="upsertTimerV1",
        method="POST",
        path="/api/v1/timers/create",
        audit="timer.create",
        replaces=True,
        handler=TimersV1.upsert,
        tag=TIMERS_NAMED_IN_THE_BODY,
        summary="Create a timer, or replace a pending one",
        description="A pending timer with the same id is replaced: its old version never fires. A "
        "timer that is no longer pending, a canceled one included, is returned if it is equal, and "
        "the request is refused if not. An `executeIn` counts from now each time.",
        body=Body(CreateBody, {"All members": examples.CREATE}),
        responses=with_failures(
            _created(
                "The timer as it is now.",
                Existence.CREATED,
                Existence.REPLACED,
                Existence.EXISTING,
            ),
            failures.INVALID,
            failures.NOT_PENDING,
            failures.TOO_LARGE,
            failures.TOO_MANY_TIMERS,
            failures.NO_ROOM,
        ),
        callback=TIMER_CALLBACK,
    ),
    Operation(
        id="getSelectedTimerV1",
        method="POST",
        path="/api/v1/timers/get",
        role=Role.READ,
        handler=TimersV1.get_selected,
        tag=TIMERS_NAMED_IN_THE_BODY,
        summary="Get a timer named in the body",
        parameters=(SECRETS,),
        body=_SELECTION,
        responses=with_failures(
            ok("The timer.", TimerAnswer, {"Pending": examples.TIMER}),
            failures.NO_NAMESPACE,
            failures.NOT_FOUND,
            failures.TOO_LARGE,
        ),
    ),
    Operation(
        id="updateSelectedTimerV1",
        method="POST",
        path="/api/v1/timers/update",
        audit="timer.update",
        handler=TimersV1.update_selected,
        tag=TIMERS_NAMED_IN_THE_BODY,
        summary="Change a pending timer named in the body",
        description="Besides the members that name the timer, at least one other is required.",
        body=Body(SelectedUpdateBody, {"New instant": examples.SELECTION | examples.UPDATE}),
        responses=_CHANGED,
    ),
    Operation(
        id="cancelSelectedTimerV1",
        method="POST",
        path="/api/v1/timers/cancel",
        audit="timer.cancel",
        handler=TimersV1.cancel_selected,
        tag=TIMERS_NAMED_IN_THE_BODY,
        summary="Cancel a pending timer named in the body",
        body=_SELECTION,
        responses=with_failures(
            _CANCELED,
            failures.NO_NAMESPACE,
            failures.NOT_FOUND,
            failures.NOT_CANCELABLE,
            failures.TOO_LARGE,
            failures.NO_ROOM,
        ),
    ),
    Operation(
        id="deleteSelectedTimerV1",
        method="POST",
        path="/api/v1/timers/delete",
        audit="timer.delete",
        handler=TimersV1.delete_selected,
        tag=TIMERS_NAMED_IN_THE_BODY,
        summary="Delete a pending timer named in the body",
        body=_SELECTION,
        responses=with_failures(
            _DELETED,
            failures.NO_NAMESPACE,
            failures.NOT_FOUND,
            failures.NOT_PENDING,
            failures.TOO_LARGE,
            failures.NO_ROOM,
        ),
    ),
    Operation(
        id="createTimersV1",
        method="POST",
        path="/api/v1/timers/batch",
        audit="timer.batch",
        handler=TimersV1.create_batch,
        tag=TIMERS,
        summary=f"Create up to {MAX_BATCH_TIMERS:,} timers",
        description="Each timer is created or refused by itself. Its result says what is wrong "
        "with it, and the others are created. The body may be "
        f"{BATCH_BODY_FACTOR} times as large as others.",
        body=Body(BatchBody, {"One is wrong": examples.BATCH}),
        responses=with_failures(
            ok("One result for each timer.", BatchAnswer, {"One is wrong": examples.BATCH_RESULTS}),
            failures.INVALID,
            failures.TOO_LARGE,
            failures.NO_ROOM,
        ),
    ),
    Operation(
        id="redriveTimersV1",
        method="POST",
        path="/api/v1/timers/redrive",
        audit="timer.redrive",
        handler=TimersV1.redrive,
        tag=TIMERS,
        summary="Fire failed timers once more",
        description="One timer by its `timerId`, or all failed timers of the namespace that match. "
        "The latter requires a filter or `all`. The timers are pending again and due at once, as "
        "new firings. With `dryRun` they are only counted.",
        body=Body(
            RedriveBody,
            {
                "Count them": examples.REDRIVE_COUNT,
                "One": examples.REDRIVE_ONE,
                "All": examples.REDRIVE_ALL,
            },
        ),
        responses=with_failures(
            ok(
                "The number of timers.",
                RedriveAnswer,
                {
                    "Counted": {"matched": 12, "redriven": 0},
                    "Redriven": {"matched": 12, "redriven": 12},
                },
            ),
            failures.INVALID_FILTER,
            failures.NOT_FOUND,
            failures.NOT_FAILED,
            failures.TOO_LARGE,
            failures.NO_ROOM,
        ),
    ),
)
