"""Values that schemathesis cannot derive from the OpenAPI document.

The schemathesis of `test_schema.py` loads this module, not pytest.
"""

import json
from datetime import UTC, datetime
from typing import Any

import schemathesis
from hypothesis import strategies as st

# Nothing listens at these addresses, and only imported timers are due during the test.
URLS = ("http://127.0.0.1:9/", "https://localhost:9/a%20b?c=d#e", "HTTP://user:word@[::1]:9")
FIRST, LAST = datetime(2090, 1, 1), datetime(2120, 1, 1)  # noqa: DTZ001 a strategy adds the zone

instants = st.datetimes(FIRST, LAST, timezones=st.just(UTC)).map(datetime.isoformat)
urls = st.sampled_from(URLS)
lines = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1, max_size=9),
        "executeAt": instants | st.just("2000-01-01T00:00:00Z"),
        "callbackUrl": urls,
    },
    optional={"payload": st.integers(), "retryPolicy": st.just({"maxRetries": 0})},
).map(json.dumps)

schemathesis.openapi.format("date-time", instants)
schemathesis.openapi.format("uri", urls)
# An import is the only body that is not JSON.
schemathesis.openapi.format("binary", st.lists(lines | st.text()).map("\n".join))


@schemathesis.serializer("application/x-ndjson", "application/octet-stream")
def send_as_it_is(context: Any, value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Make requests that fit the schema acceptable, so that not all of them are refused: they name
    namespaces that exist, and have one spelling of members that have two."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if "namespace" in (case.path_parameters or {}):
        case.path_parameters["namespace"] = "default"
    if "namespace" in (case.query or {}):
        case.query["namespace"] = "default"
    if isinstance(case.body, dict):
        for body in (case.body, *case.body.get("timers", ())):
            make_meaningful(body)


def make_meaningful(body: dict[str, Any]) -> None:
    for name in ("namespace", "groupId"):
        if name in body:
            body[name] = "default"
    for name in ("executeIn", "execute_in"):
        if name in body:
            body[name] = "1000h"
    if "callbackTimeout" in body:
        body["callbackTimeout"] = "5s"
        body.pop("callbackTimeoutSeconds", None)
    if "expireOthersAfter" in body:
        body["expireOthersAfter"] = "0s"
        body.setdefault("type", "hmac")
    policy = body.get("retryPolicy") or body.get("retry_policy")
    if policy is not None:
        for name in policy:
            if name.lower().endswith(("duration", "interval")):
                policy[name] = "1h"
