"""The bodies of the v1 API that are about endpoints, as they are written."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from duetime.api.platform.types import InstantText


class EndpointAnswer(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A party that is called, as this node sees it."""

    endpoint: Annotated[
        str, Meta(description="Its origin.", examples=["https://app.example.com:443"])
    ]
    state: Annotated[
        Literal["closed", "open", "halfOpen"],
        Meta(
            description="`closed`: it is called as usual. `open`: it keeps failing or hanging, so "
            "only a few attempts at a time go there. `halfOpen`: open, and such an attempt is "
            "under way."
        ),
    ]
    in_flight: Annotated[int, Meta(description="Attempts under way.")]
    waiting: Annotated[int, Meta(description="Timers that are due and wait for their turn.")]
    consecutive_failures: int
    last_error: str | None
    opened_at: InstantText | None


class EndpointListAnswer(Struct, frozen=True):
    """The endpoints that this node calls."""

    node: Annotated[str, Meta(description="The name of the node that answers.")]
    endpoints: list[EndpointAnswer]
