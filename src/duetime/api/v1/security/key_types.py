"""The bodies of keys that the v1 API reads and writes."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from duetime.api.http.types import DURATION, INSTANT, KEY_TEXT, InstantText
from duetime.domain import limits
from duetime.domain.defaults import DEFAULT_OVERLAP_MS
from duetime.domain.instants import format_duration

RoleText = Literal["read", "write", "admin"]

_ROLES = (
    "`read`: see timers, namespaces and operations. `write`: create and change timers; this role "
    "alone cannot read. `admin`: everything."
)
_NAMESPACES = (
    '`["*"]` for all namespaces, or the names of some. They need not exist yet. All others do not '
    "exist for the key."
)


class RateLimitBody(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Requests that a key may send to each node."""

    per_second: Annotated[
        float,
        Meta(
            description="Requests per second in the long run.",
            extra_json_schema={
                "minimum": limits.MIN_REQUESTS_PER_SECOND,
                "maximum": limits.MAX_REQUESTS_PER_SECOND,
            },
        ),
    ]
    burst: Annotated[
        int | UnsetType,
        Meta(
            description="Requests at once after a pause; by default those of one second.",
            extra_json_schema={"minimum": 1, "maximum": limits.MAX_BURST},
        ),
    ] = UNSET


class KeyBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A key to create."""

    name: Annotated[
        str,
        Meta(
            description="Tells people whose key it is. Names may repeat. `API_KEY`, `bus` and "
            "`anonymous` are refused, in any case.",
            extra_json_schema={"minLength": 1, "maxLength": limits.MAX_NAME_CHARACTERS},
        ),
    ]
    roles: Annotated[
        list[RoleText],
        Meta(
            description=_ROLES,
            extra_json_schema={"minItems": 1, "maxItems": 3, "uniqueItems": True},
        ),
    ]
    namespaces: Annotated[
        list[Annotated[str, Meta(extra_json_schema=KEY_TEXT)]],
        Meta(
            description=_NAMESPACES,
            extra_json_schema={"minItems": 1, "maxItems": limits.MAX_KEY_NAMESPACES},
        ),
    ]
    expires_at: Annotated[
        str | UnsetType | None,
        Meta(
            description="Instant from which the key is refused; null for never.",
            extra_json_schema=INSTANT,
        ),
    ] = UNSET
    rate_limit: Annotated[
        RateLimitBody | UnsetType | None,
        Meta(description="Without it the setting `KEY_RATE_LIMIT` applies."),
    ] = UNSET
    max_concurrent: Annotated[
        int | UnsetType | None,
        Meta(
            description="Requests under way at once on each node. Without it the setting "
            "`KEY_MAX_CONCURRENT` applies.",
            extra_json_schema={"minimum": 1, "maximum": limits.MAX_CONCURRENT_REQUESTS},
        ),
    ] = UNSET


class RotationBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How a key is rotated."""

    overlap: Annotated[
        str | UnsetType,
        Meta(
            description="Time for which the old key works on, such as "
            f'"{format_duration(DEFAULT_OVERLAP_MS)}", the default; "0s" ends it at once.',
            extra_json_schema=DURATION,
        ),
    ] = UNSET


class RateLimitAnswer(Struct, frozen=True, rename="camel"):
    """Requests that a key may send to each node."""

    per_second: float
    burst: int


class IssuedKeyAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A new key. This is the only time that its text is shown. Limits that are absent are those of
    the service."""

    id: str
    key: Annotated[str, Meta(description="The text to send in requests. Keep it secret.")]
    name: str
    roles: list[RoleText]
    namespaces: list[str]
    expires_at: InstantText | None
    created_at: InstantText
    rate_limit: RateLimitAnswer | UnsetType = UNSET
    max_concurrent: int | UnsetType = UNSET


class KeyAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A key without its text, which is not kept. Null means that a setting of the service applies,
    or that there is none."""

    id: str
    name: str
    roles: list[RoleText]
    namespaces: list[str]
    expires_at: InstantText | None
    created_at: InstantText
    last_used_at: Annotated[
        InstantText | None, Meta(description="The last use, as far as it is known; coarse.")
    ]
    rate_limit: RateLimitAnswer | None
    max_concurrent: int | None
    replaced_by: Annotated[
        str | None, Meta(description="The id of the successor, if the key was rotated.")
    ]


class KeyListAnswer(Struct, frozen=True):
    """All keys, the oldest first."""

    keys: list[KeyAnswer]
