"""Full lines that are refused: the error names the member, and other lines are restored."""

from typing import Any

import pytest
from msgspec import Raw, json

from tests.unit.api.v1.many_timers.full_lines import (
    exported,
    line,
    one,
    restore,
)
from tests.unit.api.v1.v1_bench import V1Bench, create_body

BAD_MEMBERS: list[tuple[dict[str, object], str]] = [
    ({"status": "gone"}, "timer.status must be one of pending, executing, completed, failed, c"),
    ({"executeAt": "2025-01-01"}, "timer.executeAt must be a date and time in ISO 8601"),
    ({"executeAt": "1969-01-01T00:00:00Z"}, "timer.executeAt must not be before 1970"),
    ({"createdAt": "1969-01-01T00:00:00Z"}, "timer.createdAt must not be before 1970"),
    ({"executeAt": "9999-01-01T00:00:00Z"}, "timer.executeAt is too far in the future"),
    ({"dueAt": 7}, "timer.dueAt must be a string"),
    ({"deliveryId": "a\r\nX: b"}, "timer.deliveryId must have 1 to 255 printable ASCII"),
    ({"id": "a\0b"}, "timer.id must not contain the character NUL"),
    ({"id": ""}, "timer.id must have 1 to 255 characters"),
    ({"attempt": -1}, "timer.attempt must be from 0 to 1000000000"),
    ({"failures": 2**31}, "timer.failures must be from 0 to 1000000000"),
    ({"claimNumber": 2**63}, "timer.claimNumber"),
    ({"commandOrder": 2**63}, "timer.commandOrder"),
    ({"fingerprint": "xyz"}, "timer.fingerprint must be hexadecimal digits"),
    ({"fingerprint": "00"}, "timer.fingerprint must have 16 bytes"),
    ({"correlationId": "\0"}, "timer.correlationId must not contain the character NUL"),
    ({"correlationId": "x" * 1_025}, "timer.correlationId must have at most 1024 characters"),
    ({"metadataText": "{"}, "timer.metadataText and the value itself cannot both be given"),
    (
        {"callback": {"type": "bus", "payloadText": "{"}},
        "timer.callback.payloadText is not valid JSON",
    ),
    ({"claimedAt": "2025-01-01T00:00:00Z"}, "timer.claimedAt must be absent while the status is"),
    ({"status": "executing"}, "timer.claimedAt is required while the status is executing"),
    ({"status": "pending"}, "timer.executedAt must be absent while the status is pending"),
    ({"surprise": 1}, "timer.surprise is not a known field"),
    ({"callback": {"type": "fax"}}, "timer.callback.type must be 'http', 'nats' or 'bus'"),
    ({"callback": {"type": "http", "url": "ftp://x/", "protocol": "status"}}, "timer.callback.url"),
    ({"callback": {"type": "nats", "topic": "a"}}, "timer.callback.type 'nats' needs a NATS"),
    (
        {"callback": {"type": "http", "url": "http://x/", "protocol": "status", "timeout": "2h"}},
        "timer.callback.timeout must be from 1ms to 1h",
    ),
    (
        {
            "callback": {
                "type": "http",
                "url": "http://x/",
                "protocol": "status",
                "headers": {"X-A": "a\r\nX-B: c"},
            }
        },
        "timer.callback.headers.X-A",
    ),
    ({"namespace": "nowhere"}, "namespace 'nowhere' does not exist"),
    ({"attempts": [{"number": 1}]}, "timer.attempts[0]"),
]


@pytest.mark.parametrize(("changes", "problem"), BAD_MEMBERS)
async def test_a_bad_member_is_named(
    bench: V1Bench, changes: dict[str, object], problem: str
) -> None:
    full = await one(bench, **changes)
    answer = await restore(bench, line(full), line(await another_good(bench)))
    assert (answer["created"], answer["invalid"]) == (1, 1)
    (error,) = answer["errors"]
    assert error["line"] == 1
    assert error["message"].startswith(problem), error["message"]
    if full["id"] == "another":
        assert error["id"] == "another"


async def another_good(bench: V1Bench) -> dict[str, Any]:
    (full,) = await exported(bench)
    return {**json.decode(full), "id": "good"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"full":2,"timer":{}}', "full must be 1: the line may be from a later release"),
        (b'{"full":"1","timer":{}}', "full must be 1"),
        (b'{"full":1}', "line must have a timer or a namespace, and not both"),
        (b'{"full":1,"timer":7}', "timer must be an object"),
        (b'{"full":1,"namespace":{"name":"a","surprise":1}}', "namespace.surprise is not a known"),
        (b'{"full":1,"namespace":{"name":"a","numShards":0}}', "numShards must be from 1 to 4096"),
        (b'{"full":1,"namespace":{"name":""}}', "namespace must have 1 to 255 characters"),
    ],
)
async def test_a_line_that_is_not_a_full_one_is_refused(
    bench: V1Bench, text: bytes, problem: str
) -> None:
    answer = await restore(bench, Raw(text), create_body("good"))
    assert (answer["created"], answer["invalid"]) == (1, 1)
    assert answer["errors"][0]["message"].startswith(problem), answer["errors"]
