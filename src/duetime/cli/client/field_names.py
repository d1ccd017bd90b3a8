"""Field names of timers: the v1 API's translated to the platform API's and back, so that the
commands show and change the timers of both alike."""

import re
from collections.abc import Mapping
from typing import cast

TimerData = Mapping[str, object]

_UNDERSCORE = re.compile(r"_([a-z])")
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
_CALLBACK = {"callback_url": "url", "callback_headers": "headers", "payload": "payload"}


def in_platform_names(timer: TimerData) -> dict[str, object]:
    """A timer of either API with the field names of the platform API."""
    if "callbackUrl" not in timer:
        return dict(timer)
    shown: dict[str, object] = {}
    callback: dict[str, object] = {}
    for name, value in _snake_case(timer).items():
        if name in _CALLBACK:
            # The callback takes the position of the first of its parts.
            shown["callback_config"] = callback
            # A callback that is not made over HTTP has no URL, and absent parts are not shown.
            if value is not None or timer["callbackUrl"] is not None:
                callback[_CALLBACK[name]] = value
        elif name == "attempts":
            shown[name] = [_snake_case(attempt) for attempt in cast(list[TimerData], value)]
        elif name == "retry_policy" and isinstance(value, dict):
            shown[name] = _snake_case(value)
        elif name != "callback_timeout_seconds":
            shown[name] = value
    return shown


def in_v1_names(members: TimerData) -> dict[str, object]:
    """The body of a v1 request from any of `execute_at`, `execute_in`, `retry_policy`,
    `callback_timeout` and `callback`, which holds the parts of a callback."""
    names = {part: name for name, part in _CALLBACK.items()}
    callback = cast(TimerData, members.get("callback", {}))
    body = {_camel_case(names[part]): callback[part] for part in names if part in callback}
    for name, value in members.items():
        if name == "retry_policy":
            policy = cast(TimerData, value)
            body["retryPolicy"] = {_camel_case(member): policy[member] for member in policy}
        elif name != "callback":
            body[_camel_case(name)] = value
    return body


def _camel_case(name: str) -> str:
    return _UNDERSCORE.sub(lambda letter: letter[1].upper(), name)


def _snake_case(data: TimerData) -> dict[str, object]:
    return {_CAPITAL.sub(r"_\1", name).lower(): value for name, value in data.items()}
