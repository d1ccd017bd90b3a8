"""The bodies about endpoints that the v1 API reads and writes."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from duetime.api.http.types import InstantText
from duetime.domain.limits import MAX_FILTER_CHARACTERS, MAX_PAUSE_REASON_CHARACTERS

_GIVEN = Annotated[
    str,
    Meta(
        description="An origin such as `https://api.example.com`, or a host, which means https. "
        "An endpoint of NATS or of the bus is named as the list of endpoints shows it.",
        examples=["https://app.example.com"],
        extra_json_schema={"minLength": 1, "maxLength": MAX_FILTER_CHARACTERS},
    ),
]
_NAME = Annotated[
    str, Meta(description="The origin of its URLs.", examples=["https://app.example.com:443"])
]
_PAUSED_AT = Annotated[InstantText, Meta(description="When the pause began.")]
_PAUSED_BY = Annotated[str, Meta(description="The name of the key that paused it.")]


class EndpointBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An endpoint to resume."""

    endpoint: _GIVEN


class PauseBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An endpoint to pause."""

    endpoint: _GIVEN
    reason: Annotated[
        str | UnsetType | None,
        Meta(
            description="Words for other people, shown wherever the pause is.",
            extra_json_schema={"maxLength": MAX_PAUSE_REASON_CHARACTERS},
        ),
    ] = UNSET


class PausedAnswer(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A pause: nothing is sent to the endpoint, by any node."""

    paused_at: _PAUSED_AT
    paused_by: _PAUSED_BY
    reason: str | None


class PauseAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """The pause that is in force now."""

    endpoint: _NAME
    paused_at: _PAUSED_AT
    paused_by: _PAUSED_BY
    reason: str | None


class FiguresAnswer(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The attempts of this node in the last 15 minutes."""

    attempts: int
    failures: Annotated[
        int,
        Meta(
            description="Attempts whose failure is the endpoint's fault: no connection, no valid "
            "answer in time, 5xx, 408 or 429."
        ),
    ]
    p50_ms: Annotated[
        float, Meta(description="Half of the attempts took no longer, in ms; off by a fifth.")
    ]
    p99_ms: Annotated[float, Meta(description="99 % took no longer, in ms; off by a fifth.")]


class EndpointAnswer(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A receiver of callbacks, as this node sees it."""

    endpoint: _NAME
    state: Annotated[
        Literal["closed", "open", "halfOpen"],
        Meta(
            description="`closed`: callbacks are made as usual. `open`: the endpoint keeps failing "
            "or hanging, so it gets only a few attempts at a time. `halfOpen`: open, with such an "
            "attempt under way."
        ),
    ]
    in_flight: Annotated[int, Meta(description="Attempts under way.")]
    waiting: Annotated[
        int,
        Meta(
            description="Due timers that wait in this process for their turn; those of a paused "
            "endpoint are counted wherever they wait, as far as this node put them off."
        ),
    ]
    consecutive_failures: int
    last_error: str | None
    opened_at: InstantText | None
    paused: Annotated[
        PausedAnswer | None, Meta(description="Null unless an operator has paused the endpoint.")
    ]
    last15_minutes: Annotated[
        FiguresAnswer | None, Meta(description="Null if this node did not call it.")
    ]


class EndpointListAnswer(Struct, frozen=True):
    """The endpoints that this node calls."""

    node: Annotated[str, Meta(description="The name of the node that answers.")]
    endpoints: list[EndpointAnswer]
