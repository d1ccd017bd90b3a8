"""The operations of the v1 API on endpoints."""

from duetime.api.http.operation import SERVICE, Body, Operation, Response
from duetime.api.v1.endpoints.endpoints import EndpointsV1
from duetime.api.v1.endpoints.types import (
    EndpointBody,
    EndpointListAnswer,
    PauseAnswer,
    PauseBody,
)
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import ok, with_failures
from duetime.domain.security.access import Role

ENDPOINT_OPERATIONS: tuple[Operation[EndpointsV1], ...] = (
    Operation(
        id="listEndpointsV1",
        method="GET",
        for_all_namespaces=True,
        path="/api/v1/endpoints",
        handler=EndpointsV1.page,
        tag=SERVICE,
        summary="List the endpoints of callbacks",
        description="The endpoints as the answering node sees them; each node makes its own calls. "
        "The list has the endpoints that were called in the last 15 minutes, at most 1,000 a "
        "minute; those with attempts under way or timers waiting; and all that are paused. It also "
        "has, for 10 minutes after their last call, endpoints that could not be reached, gave no "
        "valid answer in time, or answered with 5xx, 408 or 429. Other failures, such as a 404, "
        "count against the timer and not the endpoint.",
        responses=with_failures(
            ok("The endpoints.", EndpointListAnswer, {"One is open": examples.ENDPOINTS}),
            failures.UNKNOWN_PARAMETER,
        ),
    ),
    Operation(
        id="pauseEndpointV1",
        method="POST",
        role=Role.ADMIN,
        for_all_namespaces=True,
        path="/api/v1/endpoints/pause",
        handler=EndpointsV1.pause,
        audit="endpoint.pause",
        tag=SERVICE,
        summary="Pause an endpoint",
        description="From now on nothing is sent to the endpoint; other nodes follow within two "
        "seconds. Attempts under way finish. Timers that fall due wait as pending ones, without a "
        "failed attempt, and can be canceled and changed. The pause lasts until the endpoint is "
        "resumed, whatever is restarted. An endpoint that is paused already stays so, with the "
        "pause that it has.",
        body=Body(PauseBody, {"For a deploy": examples.PAUSE}),
        responses=with_failures(
            ok("The pause.", PauseAnswer, {"For a deploy": examples.PAUSED}),
            failures.INVALID_ENDPOINT,
            failures.TOO_MANY_PAUSES,
            failures.TOO_LARGE,
        ),
    ),
    Operation(
        id="resumeEndpointV1",
        method="POST",
        role=Role.ADMIN,
        for_all_namespaces=True,
        path="/api/v1/endpoints/resume",
        handler=EndpointsV1.resume,
        audit="endpoint.resume",
        tag=SERVICE,
        summary="Resume an endpoint",
        description="Timers that wait for the endpoint go out at once, as many at a time as usual; "
        "other nodes follow within two seconds.",
        body=Body(EndpointBody, {"After a deploy": {"endpoint": examples.PAUSE["endpoint"]}}),
        responses=with_failures(
            Response("204", "The endpoint is called again."),
            failures.INVALID_ENDPOINT,
            failures.NOT_PAUSED,
            failures.TOO_LARGE,
        ),
    ),
)
