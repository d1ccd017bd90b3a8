"""The body of an explanation."""

from typing import Annotated

from msgspec import Meta, Struct

from duetime.api.http.types import InstantText, OutcomeText, StatusText
from duetime.domain.lateness.waits import WaitCause

CauseText = Annotated[
    str,
    Meta(
        description="A word for programs. `claim`, `engine`, `lane`, `slots`, `breaker`, `paused`, "
        "`quota`, `shortage`, `store`, `clock`, `handover`, `failover` and `node_down` are waits "
        "before an attempt. `endpoint` is the time of an attempt itself. Later releases may have "
        "other words.",
        extra_json_schema={"enum": [cause.value for cause in WaitCause]},
    ),
]
Milliseconds = Annotated[float, Meta(description="Milliseconds, to the microsecond.")]


class PeriodAnswer(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A time with one cause."""

    from_at: Annotated[InstantText, Meta(description="The end of the period before.")]
    to_at: Annotated[InstantText, Meta(description="When the cause was over, or now.")]
    ms: Milliseconds
    cause: CauseText
    attempt: Annotated[
        int,
        Meta(
            description="The attempt that waited or was under way; with `retry_policy` the one "
            "that did not succeed."
        ),
    ]
    sentence: Annotated[str, Meta(description="The cause in words.")]
    see: Annotated[str, Meta(description="The section of the documentation about this cause.")]


class AttemptLatenessAnswer(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An attempt of the current firing."""

    number: Annotated[int, Meta(description="1 for the first attempt of a firing.")]
    due_at: Annotated[InstantText, Meta(description="When the attempt was to be sent.")]
    sent_at: Annotated[
        InstantText | None, Meta(description="Null if it was not sent or this is unknown.")
    ]
    answered_at: Annotated[
        InstantText | None, Meta(description="When it was answered or given up; null if unknown.")
    ]
    lateness_ms: Annotated[
        float | None,
        Meta(description="Time that it waited before it was sent; null if that is unknown."),
    ]
    outcome: OutcomeText
    error: Annotated[
        str | None, Meta(description="Why the attempt failed or was interrupted, or null.")
    ]


class ExplanationAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a timer fired when it did, or why it has not yet. Every microsecond from `askedAt` to
    `untilAt` is in exactly one of the periods."""

    namespace: Annotated[str, Meta(description="The timer's namespace.")]
    id: Annotated[str, Meta(description="The timer's id.")]
    status: StatusText
    verdict: Annotated[str, Meta(description="The explanation in a sentence or two.")]
    advice: Annotated[str | None, Meta(description="What to do; null if nothing is wrong.")]
    asked_at: Annotated[
        InstantText,
        Meta(description="The instant of the current firing; of a redriven timer the redrive."),
    ]
    until_at: Annotated[
        InstantText,
        Meta(description="The end of the last period: of the last attempt, or now."),
    ]
    lateness_ms: Annotated[
        float | None,
        Meta(
            description="Time from `askedAt` until the last attempt was sent, or until now if the "
            "timer is unfinished. Null if it was neither sent nor due, and while another node "
            "executes it, which alone knows whether it was sent."
        ),
    ]
    next_attempt_at: Annotated[
        InstantText | None, Meta(description="When a pending timer is tried next, or null.")
    ]
    periods: Annotated[list[PeriodAnswer], Meta(description="In the order of time, without gaps.")]
    attempts: Annotated[
        list[AttemptLatenessAnswer], Meta(description="Attempts of the current firing.")
    ]
    node: Annotated[str, Meta(description="The name of the node that answers.")]
    node_url: Annotated[
        str | None,
        Meta(description="The address of the node that answers. Workers of one service share it."),
    ]
    live: Annotated[
        bool,
        Meta(
            description="False if this node does not know how the timer waits at this moment: only "
            "the node that owns its shard does."
        ),
    ]
    owner: Annotated[
        str | None,
        Meta(description="The node that owns the shard of an unfinished timer; null if none does."),
    ]
    owner_url: Annotated[
        str | None, Meta(description="The address of that node, if it is another one.")
    ]
