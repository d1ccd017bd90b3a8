"""Descriptions of the members of answers, where their types have none."""

from collections.abc import Mapping
from typing import Any

Members = Mapping[str, str]

_GENERAL = ("ISO 8601 in UTC.", 'A duration such as "500ms", "30s", "1h30m" or "7d".')
"""Descriptions that state the form of a value, and are replaced by its meaning."""

_TIMER = {
    "created_at": "When the timer was created.",
    "updated_at": "When a request or an attempt last changed the timer.",
    "execute_at": "The instant that the timer is set for.",
    "last_error": "Why the latest attempt failed; null if it did not.",
    "executed_at": "When the last attempt was answered or given up; null until the timer is done.",
}
_ATTEMPT = {
    "number": "1 for the first attempt of a firing.",
    "due_at": "When the attempt was to be sent.",
    "claimed_at": "When the engine took the timer from the store.",
    "sent_at": "When the attempt was sent; null if it was not sent or this is unknown.",
    "answered_at": "When the attempt was answered or given up; null if unknown.",
    "error": "Why the attempt failed or was interrupted, or null.",
}
_PLATFORM_TIMER = {
    **_TIMER,
    "id": "The timer's id, a UUID.",
    "callback_type": "How the callback is made; `bus` is an event on the message bus.",
    "callback_config": "The callback as given.",
    "status": "The timer's status. The last three are final, except for a redrive.",
    "retry_policy": "The policy with its defaults; null if the first failure is final.",
}
_ERROR = {
    "error": "The kind of failure, for programs.",
    "message": "The failure in words. It names the field.",
    "details": "`field`: the member or parameter at fault. `fields`: the members in which an "
    "existing timer differs. `status`: the timer's status.",
}
_PAGE = {
    "next_cursor": "Null on the last page.",
    "unreadable": "Number of timers that are missing from the page because this release cannot "
    "read them; absent if there are none. `duetime audit` names them.",
}
_KEY = {
    "namespace": "The namespace of the timer. Absent if it is unreadable or too long.",
    "id": "The timer's id. Absent if it is unreadable or too long.",
}

_PLATFORM: Mapping[str, Members] = {
    "TimerSummary": _PLATFORM_TIMER,
    "ListedTimer": _PLATFORM_TIMER,
    "ChangedTimer": _PLATFORM_TIMER,
    "CanceledTimer": _PLATFORM_TIMER,
    "TimerDetail": _PLATFORM_TIMER,
    "AttemptAnswer": _ATTEMPT,
    "TimerList": {
        "timers": "The timers of this page.",
        "total": "Timers that match on all pages.",
        "limit": "The `limit` of the request.",
        "offset": "The `offset` of the request.",
    },
    "HealthStatus": {"timestamp": "When the answer was made."},
    "EngineStatus": {
        "running": "Whether timers are being fired.",
        "shards_owned": "Shards of timers that this node fires.",
    },
    "ClusterStatus": {
        "node": "The name of this node.",
        "members": "Nodes in the cluster.",
        "shards": "Shards that all timers are divided into.",
        "clock_skewed": "Whether the clocks differ by more than `CLOCK_SKEW_LIMIT_MS`.",
    },
    "BusStatus": {
        "broker": "The address of the broker.",
        "connected": "Whether the broker answered when it was last tried.",
        "commands_received": "Commands that were processed, whatever the result.",
        "commands_rejected": "Commands that could not be accepted.",
        "events_published": "Due timers that were announced.",
    },
}
_V1: Mapping[str, Members] = {
    "TimerAnswer": {
        **_TIMER,
        "id": "The id that the client chose.",
        "namespace": "The timer's namespace.",
        "callback_url": "Null if the callback is not made over HTTP.",
        "callback_type": "The type of a callback that is not made over HTTP: a NATS message, or an "
        "event on the bus.",
        "callback_protocol": "The body of the callback, and the answers that complete the timer.",
        "callback_headers": "The headers as given; absent without any.",
        "payload": "The payload as given, or null.",
        "retry_policy": "The policy with all its members; null if the first failure is final. An "
        "event on the bus has none, but is retried until the bus has it.",
        "callback_timeout_seconds": "The timeout in seconds.",
        "callback_timeout": "Longest duration of an attempt.",
        "status": "The timer's status. The last three are final, except for a redrive.",
        "attempts": "The latest attempts, oldest first.",
        "next_attempt_at": "When the next attempt is due; null if there will be none.",
        "delivery_id": "The `webhook-id` of the current firing. Its retries share it.",
        "correlation_id": "The trace id of the command on the bus; absent if there is none.",
        "metadata": "The client's own; absent if there is none.",
    },
    "AttemptAnswer": _ATTEMPT,
    "TimerPage": _PAGE,
    "FullTimerPage": _PAGE,
    "FullAttempt": _ATTEMPT,
    "FullTimer": {
        **_TIMER,
        "delivery_id": "The `webhook-id` of the current firing. Its retries share it.",
        "attempts": "The latest attempts, oldest first.",
        "correlation_id": "The trace id of the command on the bus.",
    },
    "ErrorAnswer": {**_ERROR, "timestamp": "When the answer was made."},
    "ItemError": _ERROR,
    "LineError": {**_ERROR, **_KEY},
    "BatchResult": {**_KEY, "error": "Why the status is `conflict` or `invalid`."},
    "RedriveAnswer": {
        "matched": "Failed timers that match.",
        "redriven": "Matching timers that are pending again.",
    },
    "ImportAnswer": {
        "lines": "All lines, blank ones included.",
        "created": "Timers that are new.",
        "existing": "Timers that an equal line or request created before.",
        "conflicts": "Lines whose id belongs to a different timer, or whose namespace has other "
        "options.",
        "invalid": "Lines that were refused.",
    },
    "NamespaceAnswer": {
        "name": "The namespace's name.",
        "num_shards": "Shards that the timers are spread over.",
        "retry_policy": "Policy of timers that are created without one.",
        "concurrency": "Callbacks that may be under way at once; null is no limit.",
        "max_payload_bytes": "Size of the largest payload.",
        "max_pending": "Timers that may be pending or executing; null is no limit.",
        "callback_networks": "Networks and hosts that callbacks may go to; narrows "
        "`CALLBACK_NETWORKS`.",
    },
    "EndpointAnswer": {
        "consecutive_failures": "Failures in a row that count against the endpoint: no connection, "
        "no valid answer in time, 5xx, 408 or 429. Any other answer, such as a 404, sets it to 0.",
        "last_error": "The latest such failure, even if calls have succeeded since; null if none.",
        "opened_at": "When the endpoint became open; null while it is closed.",
    },
}


def describe(schemas: dict[str, Any]) -> None:
    """Add descriptions to the schemas, except to members that have one of their own."""
    for name, members in _PLATFORM.items():
        _describe(schemas[name], members)
    for name, members in _V1.items():
        _describe(schemas[f"V1{name}"], {_camel(each): text for each, text in members.items()})


def _describe(schema: dict[str, Any], members: Members) -> None:
    for member, known in schema["properties"].items():
        if member in members and known.get("description", _GENERAL[0]) in _GENERAL:
            schema["properties"][member] = {**known, "description": members[member]}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
