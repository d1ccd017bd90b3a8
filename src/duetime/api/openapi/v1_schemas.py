"""The schemas of the v1 API in the OpenAPI document."""

from duetime.api.openapi.schemas import Schemas, refuse_together, schemas_of
from duetime.api.openapi.v1_callback import CallbackAnswer, CallbackRequest
from duetime.api.v1.endpoint_types import EndpointListAnswer
from duetime.api.v1.errors import ERRORS
from duetime.api.v1.namespace_types import NamespaceAnswer, NamespaceBody, NamespaceListAnswer
from duetime.api.v1.requests import SelectedUpdateBody
from duetime.api.v1.types import (
    BatchAnswer,
    BatchBody,
    CreateBody,
    ErrorAnswer,
    ImportAnswer,
    RedriveAnswer,
    RedriveBody,
    SelectionBody,
    TimerAnswer,
    TimerPage,
    UpdateBody,
)

_TYPES = (
    CreateBody,
    UpdateBody,
    SelectionBody,
    SelectedUpdateBody,
    BatchBody,
    RedriveBody,
    TimerAnswer,
    TimerPage,
    BatchAnswer,
    ImportAnswer,
    RedriveAnswer,
    ErrorAnswer,
    NamespaceBody,
    NamespaceAnswer,
    NamespaceListAnswer,
    EndpointListAnswer,
    CallbackRequest,
    CallbackAnswer,
)

_TIMER = {
    "id": "The client's own id.",
    "namespace": "The namespace it is in.",
    "executeAt": "The instant it is meant for.",
    "callbackUrl": "Null when the callback is not made over HTTP.",
    "callbackType": "How it is made then: a message at NATS, or an event on the bus.",
    "callbackProtocol": "What the callback says, and which answers complete the timer.",
    "callbackHeaders": "As they were given; absent without any.",
    "payload": "As it was given; null without one.",
    "retryPolicy": "The policy with all its members; null: the first failure is final, but an "
    "event on the bus is tried again until it is there.",
    "callbackTimeoutSeconds": "The same in seconds.",
    "callbackTimeout": "How long an attempt may take.",
    "createdAt": "When it was created.",
    "updatedAt": "When it was last changed, by a request or by an attempt.",
    "executedAt": "When the last attempt was answered or given up; null until it is done.",
    "status": "Where it stands. The last three are final, but for a redrive.",
    "attempts": "The latest attempts, oldest first.",
    "lastError": "Why the latest attempt failed; null if it did not.",
    "nextAttemptAt": "When the next attempt is due; null when there will be none.",
    "deliveryId": "The `webhook-id` of the current firing, the same in its retries.",
    "correlationId": "What the command on the bus was traced by; absent if there is none.",
    "metadata": "The client's own; absent if there is none.",
}
_ERROR = {
    "error": "What went wrong, for programs.",
    "message": "What went wrong, for people. It names the field.",
    "details": "`field`: the member or parameter at fault. `fields`: the members that a timer "
    "which exists differs in. `status`: the timer's status.",
}
_KEY = {
    "namespace": "Where the timer is, or was meant to be. Absent when it could not be read, or is "
    "too long to be one.",
    "id": "Absent when it could not be read, or is too long to be one.",
}
_MEMBERS = {
    "TimerAnswer": _TIMER,
    "AttemptAnswer": {
        "number": "1 for the first attempt of a firing.",
        "dueAt": "When it was to be sent.",
        "claimedAt": "When the engine took it from the store.",
        "sentAt": "When it was sent; null if it was not, or nobody knows.",
        "answeredAt": "When it was answered or given up; null if nobody knows.",
        "error": "Why it failed or was interrupted; else null.",
    },
    "TimerPage": {"nextCursor": "Null on the last page."},
    "ErrorAnswer": {**_ERROR, "timestamp": "When this was answered."},
    "ItemError": _ERROR,
    "LineError": {**_ERROR, **_KEY},
    "BatchResult": {
        **_KEY,
        "error": "Why it is `conflict` or `invalid`.",
    },
    "RedriveAnswer": {
        "matched": "Failed timers that match.",
        "redriven": "Those of them that are pending again.",
    },
    "ImportAnswer": {
        "lines": "All lines, blank ones included.",
        "created": "Timers that are new.",
        "existing": "Timers that were there, as an equal line or request made them.",
        "conflicts": "Lines whose id belongs to a different timer.",
        "invalid": "Lines that were refused.",
    },
    "NamespaceAnswer": {
        "name": "Its name.",
        "numShards": "How many shards its timers are spread over.",
        "retryPolicy": "For timers that come without one.",
        "concurrency": "How many of its callbacks may be under way at once; null is no limit.",
        "maxPayloadBytes": "The largest payload of its timers.",
    },
    "EndpointAnswer": {
        "consecutiveFailures": "Failures in a row that speak against the endpoint: no connection, "
        "no valid answer in time, 5xx, 408 or 429. Any other answer, such as a 404, sets it to 0.",
        "lastError": "The latest such failure, even if all went well since; null if none.",
        "openedAt": "Since when it is open; null while it is closed.",
    },
}
_GENERAL = ("ISO 8601 in UTC.", 'A duration such as "500ms", "30s", "10m" or "1h30m".')


def schemas() -> Schemas:
    found = schemas_of(_TYPES, prefix="V1")
    _describe(found)
    for name in ("V1ErrorAnswer", "V1ItemError", "V1LineError"):
        found[name]["properties"]["error"] |= {"enum": list(ERRORS)}
    found["V1UpdateBody"]["minProperties"] = 1
    found["V1SelectedUpdateBody"]["minProperties"] = 2
    found["V1RedriveBody"]["minProperties"] = 1
    refuse_together(
        found["V1RetryPolicyBody"],
        ("maxRetries", "maxAttempts"),
        ("maxRetryAttemptsDuration", "maxAttemptsDuration"),
    )
    return found


def _describe(schemas: Schemas) -> None:
    """Add descriptions where the types have none of their own."""
    for name, members in _MEMBERS.items():
        properties = schemas[f"V1{name}"]["properties"]
        for member, text in members.items():
            if properties[member].get("description", _GENERAL[0]) in _GENERAL:
                properties[member] = {**properties[member], "description": text}
