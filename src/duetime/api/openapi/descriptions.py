"""What the members of answers mean, where their types do not say it."""

from collections.abc import Mapping
from typing import Any

_TIMER = {
    "id": "The timer's id, a UUID.",
    "created_at": "When it was created.",
    "updated_at": "When it was last changed, by a request or by an attempt.",
    "execute_at": "The instant it is meant for.",
    "callback_type": "How the callback is made; `bus`: as an event on the message bus.",
    "callback_config": "The callback as it was given.",
    "status": "Where it stands. The last three are final.",
    "last_error": "Why the latest attempt failed; null if it did not.",
    "executed_at": "When the last attempt was answered or given up; null until it is done.",
    "retry_policy": "The policy with its defaults filled in; null: the first failure is final.",
}
_MEMBERS: Mapping[str, Mapping[str, str]] = {
    "TimerSummary": _TIMER,
    "ChangedTimer": _TIMER,
    "CanceledTimer": _TIMER,
    "TimerDetail": _TIMER,
    "TimerList": {
        "timers": "The timers of this page.",
        "total": "How many timers match in all.",
        "limit": "As it was asked for.",
        "offset": "As it was asked for.",
    },
    "AttemptAnswer": {
        "number": "1 for the first attempt of a firing.",
        "due_at": "When it was to be sent.",
        "claimed_at": "When the engine took it from the store.",
        "sent_at": "When it was sent; null if it was not, or nobody knows.",
        "answered_at": "When it was answered or given up; null if nobody knows.",
        "error": "Why it failed or was interrupted; else null.",
    },
    "HealthStatus": {"timestamp": "When this was answered."},
    "EngineStatus": {
        "running": "Whether timers are being fired.",
        "shards_owned": "Parts of the timers that this process takes care of.",
    },
    "ClusterStatus": {
        "node": "The name of this process.",
        "members": "How many processes there are.",
        "shards": "Parts into which all timers are divided.",
        "clock_skewed": "Whether the clocks differ by more than `CLOCK_SKEW_LIMIT_MS`.",
    },
    "BusStatus": {
        "broker": "Where the broker is.",
        "connected": "Whether it could be spoken to when that was last tried.",
        "commands_received": "Commands that were done with, whatever became of them.",
        "commands_rejected": "Those of them that could not be accepted.",
        "events_published": "Timers that were announced.",
    },
}
_GENERAL = "ISO 8601 in UTC."


_CHOICES = {
    "status": ["pending", "executing", "completed", "failed", "canceled"],
    "callback_type": ["http", "nats", "bus"],
}


def describe_answers(schemas: dict[str, Any]) -> None:
    """Add descriptions to the schemas. What a type says of itself stays, unless it is only the
    form of instants, which says nothing about this one."""
    for name, members in _MEMBERS.items():
        properties = schemas.get(name, {}).get("properties", {})
        for member, text in members.items():
            known = properties.get(member)
            if known is not None and known.get("description", _GENERAL) == _GENERAL:
                properties[member] = {**known, "description": text}
    for name in ("TimerSummary", "ChangedTimer", "CanceledTimer", "TimerDetail"):
        for member, choices in _CHOICES.items():
            if member in schemas[name]["properties"]:
                schemas[name]["properties"][member]["enum"] = choices
