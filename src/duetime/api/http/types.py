"""Types of members that both APIs have, and their JSON Schema.

The schemas inform clients. The service checks values itself, with messages that name the field.
"""

from typing import Annotated

from msgspec import Meta, UnsetType

from duetime.api.http.values import STATUSES
from duetime.domain import limits
from duetime.domain.instants import format_duration
from duetime.domain.outcome import AttemptOutcome

KEY_LENGTH = {"minLength": 1, "maxLength": limits.MAX_KEY_CHARACTERS}
KEY_TEXT = {**KEY_LENGTH, "pattern": r"^[^\u0000]*$"}
INSTANT = {"format": "date-time", "maxLength": limits.MAX_INSTANT_CHARACTERS}
DURATION = {
    "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$",
    "maxLength": limits.MAX_DURATION_CHARACTERS,
}
HTTP_URL = {
    "format": "uri",
    "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://",
    "maxLength": limits.MAX_URL_CHARACTERS,
}
HEADERS = {
    "maxProperties": limits.MAX_HEADERS,
    "propertyNames": {"pattern": r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"},
}

InstantText = Annotated[
    str, Meta(description="ISO 8601 in UTC.", extra_json_schema={"format": "date-time"})
]
DurationText = Annotated[
    str,
    Meta(
        description='A duration such as "500ms", "30s", "1h30m" or "7d".',
        extra_json_schema=DURATION,
    ),
]
HeaderValue = Annotated[
    str, Meta(extra_json_schema={"pattern": r"^[\u0009\u0020-\u007e\u0080-\u00ff]*$"})
]
ShownHeaders = Annotated[
    dict[str, str] | UnsetType,
    Meta(
        description="Values of headers whose names say that they are secrets (`Cookie`, `X-Auth` "
        "and the like, and names with authorization, authentication, credential, jwt, key, "
        "passphrase, passwd, password, secret, session, signature or token in them) are "
        "`[redacted]`, unless an admin asks with `secrets=true`.",
    ),
]
StatusText = Annotated[str, Meta(extra_json_schema={"enum": list(STATUSES)})]
AnswerText = Annotated[
    str | None,
    Meta(description="The beginning of the body of an answer that was a failure."),
]
OutcomeText = Annotated[
    str,
    Meta(
        description="How the attempt ended. `rescheduled`: the receiver asked for another instant. "
        "`interrupted`: Duetime recorded no answer, because it stopped or lost the connection. An "
        "interrupted attempt is repeated and does not count as a failure.",
        extra_json_schema={"enum": [outcome.value for outcome in AttemptOutcome]},
    ),
]

ExecuteIn = Annotated[
    str | UnsetType,
    Meta(
        description='Duration until the callback, such as "30s" or "1h30m", instead of the '
        "instant: the server adds it to its own clock.",
        extra_json_schema=DURATION,
        examples=["30s"],
    ),
]

MaxRetries = Annotated[
    int | UnsetType,
    Meta(
        description="Retries after the first attempt.",
        extra_json_schema={"minimum": 0, "maximum": limits.MAX_RETRIES},
    ),
]
MaxAttempts = Annotated[
    int | UnsetType,
    Meta(
        description="Attempts in all: one more than the retries. Both may be given if they agree.",
        extra_json_schema={"minimum": 1, "maximum": limits.MAX_RETRIES + 1},
    ),
]
MaxRetryDuration = Annotated[
    str | UnsetType,
    Meta(
        description="No retry is planned later than this after the first attempt. At most "
        f"{format_duration(limits.MAX_RETRY_DURATION_MS)}.",
        extra_json_schema=DURATION,
    ),
]
MaxAttemptsDuration = Annotated[
    str | UnsetType,
    Meta(
        description="Another name for the longest time after the first attempt. If both are given, "
        "they must agree.",
        extra_json_schema=DURATION,
    ),
]
InitialInterval = Annotated[
    str | UnsetType,
    Meta(
        description='Wait before the first retry, such as "500ms", "30s" or "1h30m".',
        extra_json_schema=DURATION,
    ),
]
BackoffMultiplier = Annotated[
    float | UnsetType,
    Meta(
        description="Factor between one wait and the next.",
        extra_json_schema={
            "minimum": limits.MIN_BACKOFF_MULTIPLIER,
            "maximum": limits.MAX_BACKOFF_MULTIPLIER,
        },
    ),
]
MaxInterval = Annotated[
    str | UnsetType,
    Meta(
        description="Longest wait between attempts. At most "
        f"{format_duration(limits.MAX_RETRY_INTERVAL_MS)}.",
        extra_json_schema=DURATION,
    ),
]
