"""The bodies of bulk operations that the v1 API reads and writes."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from duetime.api.http.types import DURATION, INSTANT, InstantText
from duetime.api.v1.request_types import GroupIdText, NamespaceText
from duetime.domain.limits import MAX_FILTER_CHARACTERS

_MOVE = {
    "pattern": r"^-?([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$",
    "maxLength": DURATION["maxLength"],
}

FILTER_TEXT = {"minLength": 1, "maxLength": MAX_FILTER_CHARACTERS}

DueAfter = Annotated[
    str | UnsetType,
    Meta(
        description="Only timers with an `executeAt` at or after this instant.",
        extra_json_schema=INSTANT,
    ),
]
DueBefore = Annotated[
    str | UnsetType,
    Meta(
        description="Only timers with an `executeAt` before this instant.",
        extra_json_schema=INSTANT,
    ),
]
ErrorContains = Annotated[
    str | UnsetType,
    Meta(
        description="Only timers whose `lastError` contains this text. Case matters.",
        extra_json_schema=FILTER_TEXT,
    ),
]


class MetadataBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A member of the metadata, and its value."""

    key: Annotated[
        str,
        Meta(
            description="A member at the top of the metadata.",
            examples=["customerId"],
            extra_json_schema=FILTER_TEXT,
        ),
    ]
    value: Annotated[
        str,
        Meta(
            description="The text that the member is. A member that is no text matches by its "
            'JSON: `"17"` matches 17, too.',
            examples=["17"],
            extra_json_schema={"maxLength": MAX_FILTER_CHARACTERS},
        ),
    ]


class FilterBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The timers that an operation is for: those that meet every condition given."""

    status: Annotated[
        Literal["pending", "failed"] | UnsetType,
        Meta(
            description="`failed` for a redrive, `pending` for the others, which is understood: it "
            "is no condition."
        ),
    ] = UNSET
    due_after: DueAfter = UNSET
    due_before: DueBefore = UNSET
    id_prefix: Annotated[
        str | UnsetType,
        Meta(
            description="Only timers whose id starts with this text.",
            extra_json_schema=FILTER_TEXT,
        ),
    ] = UNSET
    endpoint: Annotated[
        str | UnsetType,
        Meta(
            description="Only timers that call this origin or host over HTTP. It has no path.",
            examples=["https://app.example.com"],
            extra_json_schema=FILTER_TEXT,
        ),
    ] = UNSET
    error_contains: ErrorContains = UNSET
    metadata: Annotated[
        MetadataBody | UnsetType,
        Meta(description="Only timers whose metadata is an object with this member."),
    ] = UNSET


class OperationBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """An action on every timer of a namespace that matches."""

    action: Literal["cancel", "redrive", "reschedule", "run-now"]
    namespace: NamespaceText | UnsetType = UNSET
    group_id: GroupIdText = UNSET
    filter: FilterBody | UnsetType = UNSET
    all: Annotated[
        bool, Meta(description="Needed for an operation on all timers, without a filter.")
    ] = False
    execute_at: Annotated[
        str | UnsetType,
        Meta(description="The new instant of a reschedule.", extra_json_schema=INSTANT),
    ] = UNSET
    move_by: Annotated[
        str | UnsetType,
        Meta(
            description='The duration by which a reschedule moves each timer, such as "1h" or '
            '"-15m". A timer that waits for a retry is moved from the instant of the retry. One '
            "that is moved into the past is due at once.",
            examples=["1h"],
            extra_json_schema=_MOVE,
        ),
    ] = UNSET
    dry_run: Annotated[bool, Meta(description="Only count the timers.")] = False


class CountAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """How many timers match."""

    matched: Annotated[
        int,
        Meta(description="Timers that match, counted before the start; executing ones included."),
    ]
    matched_is_minimum: Annotated[
        bool, Meta(description="Counting took too long and was cut short: more may match.")
    ]


class OperationAnswer(CountAnswer, frozen=True, kw_only=True, rename="camel"):
    """A bulk operation as it is now."""

    id: str
    action: Literal["cancel", "redrive", "reschedule", "run-now", "delete-namespace"]
    namespace: str
    started_by: Annotated[
        str | None,
        Meta(
            description="The name of the key that started it, as the audit log names it. Null for "
            "operations that an earlier release started."
        ),
    ]
    filter: FilterBody
    execute_at: InstantText | UnsetType = UNSET
    move_by: str | UnsetType = UNSET
    status: Literal["running", "completed", "aborted", "failed"]
    scanned: Annotated[int, Meta(description="Timers looked at so far.")]
    changed: Annotated[
        int,
        Meta(
            description="Timers changed so far. After a crash of the service it may lack those of "
            "one batch."
        ),
    ]
    skipped: Annotated[
        int,
        Meta(
            description="Timers that matched, and then fired or were changed before. For `run-now` "
            "also those that were due already."
        ),
    ]
    executing: Annotated[
        int,
        Meta(
            description="Timers that match and are executing. The operation waits up to 15 minutes "
            "for them: those that become pending again are changed, the others are skipped. Always "
            "0 for a redrive and for `run-now`."
        ),
    ]
    error: Annotated[str | None, Meta(description="Why the operation failed.")]
    created_at: InstantText
    updated_at: InstantText
    finished_at: InstantText | None


class OperationListAnswer(Struct, frozen=True):
    """The newest operations first."""

    operations: list[OperationAnswer]
