"""The operation of the v1 API that explains a timer."""

from duetime.api.http.operation import Operation
from duetime.api.v1.explaining.explaining import ExplainingV1
from duetime.api.v1.explaining.types import ExplanationAnswer
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import ok, with_failures
from duetime.api.v1.routes.timers import KEY, TIMERS

LATE_EXPLANATION = {
    "namespace": examples.NAMESPACE,
    "id": examples.TIMER_ID,
    "status": "completed",
    "verdict": "Fired 5.31 s late: 5.30 s of it waiting for its endpoint's breaker to close; the "
    "answer took 42.0 ms.",
    "advice": "Mend the receiver: `duetime endpoints` shows its last error. The breaker closes by "
    "itself with the first answer.",
    "askedAt": examples.EXECUTE_AT,
    "untilAt": "2030-01-01T12:00:05.354Z",
    "latenessMs": 5312.0,
    "nextAttemptAt": None,
    "periods": [
        {
            "fromAt": examples.EXECUTE_AT,
            "toAt": "2030-01-01T12:00:00.012Z",
            "ms": 12.0,
            "cause": "claim",
            "attempt": 1,
            "sentence": "It was due, but not claimed yet: its node was behind with claims.",
            "see": "how-to/explain-a-timer#claim",
        },
        {
            "fromAt": "2030-01-01T12:00:00.012Z",
            "toAt": "2030-01-01T12:00:05.312Z",
            "ms": 5300.0,
            "cause": "breaker",
            "attempt": 1,
            "sentence": "The breaker of https://app.example.com was open: it kept failing or "
            "hanging.",
            "see": "how-to/explain-a-timer#breaker",
        },
        {
            "fromAt": "2030-01-01T12:00:05.312Z",
            "toAt": "2030-01-01T12:00:05.354Z",
            "ms": 42.0,
            "cause": "endpoint",
            "attempt": 1,
            "sentence": "Attempt 1 was under way: https://app.example.com took that long to "
            "answer.",
            "see": "how-to/explain-a-timer#endpoint",
        },
    ],
    "attempts": [
        {
            "number": 1,
            "dueAt": examples.EXECUTE_AT,
            "sentAt": "2030-01-01T12:00:05.312Z",
            "answeredAt": "2030-01-01T12:00:05.354Z",
            "latenessMs": 5312.0,
            "outcome": "completed",
            "error": None,
        }
    ],
    "node": "timers-1:4711:6f0c",
    "nodeUrl": "http://timers-1:8080",
    "live": True,
    "owner": None,
    "ownerUrl": None,
}

_NOT_DUE = {
    **LATE_EXPLANATION,
    "status": "pending",
    "verdict": "Not due yet: it fires in 30m, at 2030-01-01T12:00:00Z.",
    "advice": None,
    "untilAt": examples.EXECUTE_AT,
    "latenessMs": None,
    "nextAttemptAt": examples.EXECUTE_AT,
    "periods": [],
    "attempts": [],
    "owner": "timers-1:4711:6f0c",
}

EXPLAIN_OPERATIONS: tuple[Operation[ExplainingV1], ...] = (
    Operation(
        id="explainTimerV1",
        method="GET",
        path="/api/v1/explain/{namespace}/{timerId}",
        handler=ExplainingV1.explain,
        tag=TIMERS,
        summary="Explain why a timer fired when it did, or why it has not yet",
        description="Attributes every millisecond between the instant that was asked for and the "
        "end of the last attempt, or now, to a cause: from the record of the attempts, and from "
        "the state of the node if the timer is unfinished. A finished timer is explained alike by "
        "every node. Only the node that owns the timer's shard knows why a timer waits at this "
        "moment; another node answers `live: false` and names the `owner`.",
        parameters=KEY,
        responses=with_failures(
            ok(
                "The explanation.",
                ExplanationAnswer,
                {"Late": LATE_EXPLANATION, "Not due yet": _NOT_DUE},
            ),
            failures.NO_NAMESPACE,
            failures.NOT_FOUND,
        ),
    ),
)
