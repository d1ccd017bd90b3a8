"""The operations of the v1 API that copy timers out of the service and into it."""

from duetime.api.http.operation import Body, Operation
from duetime.api.v1.answer_types import ImportAnswer
from duetime.api.v1.full.types import FullTimerPage
from duetime.api.v1.listing import IMPORT_PARAMETERS, LIST_PARAMETERS
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import ok, with_failures
from duetime.api.v1.routes.timers import TIMERS
from duetime.api.v1.timers import TimersV1

COPY_OPERATIONS: tuple[Operation[TimersV1], ...] = (
    Operation(
        id="importTimersV1",
        method="POST",
        path="/api/v1/timers/import",
        audit="timer.import",
        handler=TimersV1.create_stream,
        tag=TIMERS,
        summary="Create or restore any number of timers",
        description="A stream of any length, one JSON object per line. Blank lines are skipped. "
        "Timers whose instant has passed are accepted, and due at once. Sending the same stream "
        "again is safe. If the key is revoked or expires meanwhile, the answer is a 401, and "
        "earlier lines may have been created. Full lines restore namespaces and timers with their "
        "whole state: a timer that exists is left alone, an executing one becomes pending, so that "
        "its attempt may be made twice, and a finished one is forgotten when its retention is "
        "over.",
        parameters=IMPORT_PARAMETERS,
        body=Body(
            {
                "type": "string",
                "format": "binary",
                "description": "One JSON object per line, without line breaks in it: the body of a "
                'create (`V1CreateBody`), or a full line, `{"full": 1, "namespace": …}` with a '
                'namespace as the list of namespaces shows it, or `{"full": 1, "timer": …}` with a '
                "`V1FullTimer`. The namespaces come before their timers.",
            },
            {"Two lines": examples.IMPORT, "Full lines": examples.FULL_IMPORT},
            media=("application/x-ndjson", "application/octet-stream"),
        ),
        responses=with_failures(
            ok(
                "The counts, and the lines that were refused.",
                ImportAnswer,
                {"One is wrong": examples.IMPORTED, "Restored": examples.RESTORED},
            ),
            failures.NO_NAMESPACE,
            failures.NO_ROOM,
        ),
    ),
    Operation(
        id="exportTimersV1",
        method="GET",
        path="/api/v1/timers/export",
        handler=TimersV1.page_full,
        tag=TIMERS,
        summary="Copy the timers of a namespace",
        description="Pages like those of the list of timers, with everything that is needed to "
        'restore each timer: an import takes `{"full": 1, "timer": …}` with a timer of the page. '
        "With `secrets=true` the copy has the secrets of the callbacks; keep it as secret as these "
        "are. Without them it can be imported only where the same timers exist.",
        parameters=LIST_PARAMETERS,
        responses=with_failures(
            ok("A page of timers.", FullTimerPage, {"The last page": examples.FULL_PAGE}),
            failures.INVALID_LIMIT,
        ),
    ),
)
