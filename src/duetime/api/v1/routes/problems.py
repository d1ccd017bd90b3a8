"""The operation of the v1 API that says what is wrong."""

from duetime.api.http.operation import SERVICE, Operation
from duetime.api.v1.problems import ProblemListAnswer, ProblemsV1
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import ok, with_failures

PROBLEM_OPERATIONS: tuple[Operation[ProblemsV1], ...] = (
    Operation(
        id="listProblemsV1",
        method="GET",
        path="/api/v1/problems",
        handler=ProblemsV1.page,
        tag=SERVICE,
        summary="List what is wrong",
        description="Everything that is wrong as far as the answering node knows, the worst first: "
        "timers behind open breakers, paused endpoints, overdue and failing timers, missed "
        "objectives, a slow or absent store, a short disk, wrong clocks, lost nodes, shards "
        "without an owner, and brokers that are away. A key for some namespaces sees what "
        "concerns them. The list is empty if all is well.",
        responses=with_failures(
            ok("The problems.", ProblemListAnswer, {"A breaker is open": examples.PROBLEMS}),
            failures.UNKNOWN_PARAMETER,
        ),
    ),
)
