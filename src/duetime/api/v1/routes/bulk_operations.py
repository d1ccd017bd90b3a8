"""The bulk operations of the v1 API, and the deletion of namespaces, which is one of them."""

from duetime.api.http.operation import Body, Operation, Parameter, Response, Tag
from duetime.api.v1.bulk_operations import LIST_LIMIT, OperationsV1
from duetime.api.v1.bulk_types import (
    CountAnswer,
    OperationAnswer,
    OperationBody,
    OperationListAnswer,
)
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import ok, with_failures

OPERATIONS = Tag(
    "Operations v1",
    "Actions on every timer that matches a filter. An operation runs in the background, survives "
    "restarts, and leaves timers alone that were created after it. Ended operations are kept for "
    "seven days.",
)
_ID = Parameter(
    "operationId",
    "The operation's id.",
    {"type": "string"},
    place="path",
    example=examples.OPERATION_ID,
)

ACCEPTED = Response(
    "202",
    "The operation has begun. Its path is in the header `Location`.",
    OperationAnswer,
    {"Running": examples.OPERATION},
)

BULK_OPERATIONS: tuple[Operation[OperationsV1], ...] = (
    Operation(
        id="startOperationV1",
        method="POST",
        path="/api/v1/operations",
        audit="operation.start",
        handler=OperationsV1.start,
        tag=OPERATIONS,
        summary="Cancel, redrive, reschedule or run all timers that match",
        description="Pending timers are canceled, rescheduled or run now, failed timers are "
        "redriven. Timers that are executing are canceled or rescheduled when they become pending "
        "again. `run-now` makes pending timers due at once, those that wait for a retry, too. A "
        "reschedule needs `executeAt` or `moveBy`. With `dryRun` the timers are only counted.",
        body=Body(
            OperationBody,
            {
                # The docs page sends the first one as it is, so it changes nothing.
                "Count": examples.BULK_COUNT,
                "Cancel": examples.BULK_CANCEL,
                "Move by an hour": examples.BULK_MOVE,
                "Run now": examples.BULK_RUN_NOW,
            },
        ),
        responses=with_failures(
            ACCEPTED,
            ok(
                "The number of timers, for a dry run.",
                CountAnswer,
                {"Counted": {"matched": 1_204, "matchedIsMinimum": False}},
            ),
            failures.INVALID_BULK_FILTER,
            failures.TOO_LARGE,
            failures.TOO_MANY_OPERATIONS,
            failures.NO_ROOM,
        ),
    ),
    Operation(
        id="listOperationsV1",
        method="GET",
        path="/api/v1/operations",
        handler=OperationsV1.page,
        tag=OPERATIONS,
        summary="List the newest operations",
        parameters=(LIST_LIMIT,),
        responses=with_failures(
            ok(
                "The newest operations first.",
                OperationListAnswer,
                {"One": {"operations": [examples.ENDED_OPERATION]}},
            ),
            failures.INVALID_LIMIT,
        ),
    ),
    Operation(
        id="getOperationV1",
        method="GET",
        path="/api/v1/operations/{operationId}",
        handler=OperationsV1.get,
        tag=OPERATIONS,
        summary="Get an operation and its progress",
        parameters=(_ID,),
        responses=with_failures(
            ok("The operation.", OperationAnswer, {"Ended": examples.ENDED_OPERATION}),
            failures.UNREADABLE_OPERATION,
            failures.NO_OPERATION,
        ),
    ),
    Operation(
        id="abortOperationV1",
        method="DELETE",
        path="/api/v1/operations/{operationId}",
        audit="operation.abort",
        handler=OperationsV1.abort,
        tag=OPERATIONS,
        summary="Abort a running operation",
        description="Timers that were changed already stay changed. Up to 16 timers whose change "
        "is under way, or 200 whose redrive is, may still change after the answer; they are added "
        "to the counts.",
        parameters=(_ID,),
        responses=with_failures(
            ok(
                "The aborted operation.",
                OperationAnswer,
                {"Aborted": {**examples.OPERATION, "status": "aborted"}},
            ),
            failures.UNREADABLE_OPERATION,
            failures.NO_OPERATION,
            failures.OPERATION_ENDED,
            failures.NO_ROOM,
        ),
    ),
)
