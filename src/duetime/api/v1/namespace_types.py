"""The bodies of the v1 API that are about namespaces, as they are read and written."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from duetime.api.http.constraints import DURATION
from duetime.api.v1.types import RetryPolicyAnswer, RetryPolicyBody


class NamespaceBody(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """A namespace that is wanted. What is absent stays as it is, and null resets it."""

    num_shards: Annotated[
        int | UnsetType | None,
        Meta(
            description="How many shards its timers are spread over, 16 unless given. Fixed once "
            "it exists.",
            extra_json_schema={"minimum": 1, "maximum": 4096},
        ),
    ] = UNSET
    retry_policy: Annotated[
        RetryPolicyBody | UnsetType | None,
        Meta(
            description="For timers that come without one. Absent members stay as they are; null "
            "is the default policy."
        ),
    ] = UNSET
    retention: Annotated[
        str | UnsetType | None,
        Meta(
            description='How long finished timers are kept, such as "7d"; "0s" is for ever, null '
            "what the service is set to.",
            examples=["7d"],
            extra_json_schema=DURATION,
        ),
    ] = UNSET
    concurrency: Annotated[
        int | UnsetType | None,
        Meta(
            description="How many of its callbacks may be under way at once on all nodes "
            "together; null is no limit of its own.",
            extra_json_schema={"minimum": 1, "maximum": 65_536},
        ),
    ] = UNSET
    max_payload_bytes: Annotated[
        int | UnsetType | None,
        Meta(
            description="The largest payload of its timers; null is what the service is set to.",
            extra_json_schema={"minimum": 1, "maximum": 16_777_216},
        ),
    ] = UNSET


class CountsAnswer(Struct, frozen=True, kw_only=True, gc=False):
    """How many timers have which status."""

    pending: int
    executing: int
    completed: int
    failed: int
    canceled: int


class NamespaceAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A namespace as it is now. Null stands for what the service is set to."""

    name: str
    num_shards: int
    retry_policy: RetryPolicyAnswer
    retention: Annotated[str | None, Meta(description='"0s" is for ever.')]
    concurrency: int | None
    max_payload_bytes: int | None
    counts: Annotated[
        CountsAnswer | UnsetType, Meta(description="Of its timers; not part of lists.")
    ] = UNSET


class NamespaceListAnswer(Struct, frozen=True):
    """All namespaces, in the order of their names."""

    namespaces: list[NamespaceAnswer]
