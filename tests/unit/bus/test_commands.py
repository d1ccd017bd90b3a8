"""Parsing commands, and explaining why they are rejected."""

import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from duetime.bus.commands import Rejection, read_command, reason_of
from duetime.bus.rejections import rejection_message
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import parse_instant
from duetime.ports.bus import Channel, ReceivedCommand
from duetime.service.bus_scheduling import Cancellation, Schedule


def json_texts() -> st.SearchStrategy[bytes]:
    """Commands with any JSON in any member."""
    anything = st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
    payload = st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("tenantId", "serviceCallId", "dueAt"), anything)
    )
    fields = dict.fromkeys(("id", "type", "tenantId", "timestampMs", "correlationId"), anything)
    envelope = st.fixed_dictionaries({}, optional={**fields, "payload": payload | anything})
    return envelope.map(lambda document: json.dumps(document).encode("utf-8", "surrogatepass"))


NOW = parse_instant("2030-01-01T00:00:00Z")

PAYLOAD: dict[str, Any] = {
    "tenantId": "acme",
    "serviceCallId": "call-1",
    "dueAt": "2030-01-01T12:00:00.250+01:00",
}
ENVELOPE: dict[str, Any] = {
    "id": "01920f6e-7a3b-7cc1-8f2e-5d4c3b2a1908",
    "type": "ScheduleTimer",
    "tenantId": "acme",
    "timestampMs": 1_893_456_000_000,
    "payload": PAYLOAD,
}


def command(data: object, order: int = 7) -> ReceivedCommand:
    encoded = data if isinstance(data, bytes) else json.dumps(data).encode()
    return ReceivedCommand(data=encoded, order=order)


def without(document: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != field}


def with_payload(**fields: object) -> dict[str, Any]:
    return {**ENVELOPE, "payload": {**PAYLOAD, **fields}}


def test_a_command_names_the_call_and_the_instant() -> None:
    assert read_command(command({**ENVELOPE, "correlationId": "req-1"})) == Schedule(
        namespace="acme",
        id="call-1",
        due_at=parse_instant("2030-01-01T11:00:00.25Z"),
        correlation_id="req-1",
        order=7,
    )


@pytest.mark.parametrize(
    "extra",
    [
        {"aggregateId": "call-1", "causationId": "x"},
        {"aggregateId": None, "causationId": None, "correlationId": None},
        {"somethingNew": {"deep": [1, 2]}},
    ],
)
def test_optional_and_unknown_members_are_accepted(extra: dict[str, Any]) -> None:
    schedule = read_command(command({**ENVELOPE, **extra}))
    assert isinstance(schedule, Schedule)
    assert (schedule.id, schedule.correlation_id) == ("call-1", None)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the command is empty"),
        (b"hello", "the command is not JSON in UTF-8, or is nested too deeply"),
        (b"\xff\xfe", "the command is not JSON in UTF-8, or is nested too deeply"),
        (b'{"id": NaN}', "the command is not JSON in UTF-8, or is nested too deeply"),
        (b'{"a":' * 10_000, "the command is not JSON in UTF-8, or is nested too deeply"),
        (
            {**ENVELOPE, "other": "x" * 65_537},
            "the command must not be larger than 65536 bytes without payload.payload",
        ),
        ([], "the command must be an object"),
        ({}, "id is missing"),
        (
            {**ENVELOPE, "type": "MoveTimer"},
            "type is 'MoveTimer'; only 'ScheduleTimer' and 'CancelTimer' are known",
        ),
        (without(ENVELOPE, "type"), "type is missing"),
        ({**ENVELOPE, "type": 3}, "type must be a string"),
        ({**ENVELOPE, "id": ""}, "id must have at least 1 character"),
        ({**ENVELOPE, "id": "x" * 256}, "id must have at most 255 characters"),
        ({**ENVELOPE, "timestampMs": "now"}, "timestampMs must be a whole number"),
        ({**ENVELOPE, "timestampMs": -1}, "timestampMs must be at least 0"),
        (without(ENVELOPE, "payload"), "payload is missing"),
        (
            {**ENVELOPE, "payload": without(PAYLOAD, "dueAt")},
            "payload.dueAt is missing",
        ),
        (with_payload(tenantId=None), "payload.tenantId must be a string"),
        (with_payload(serviceCallId=""), "payload.serviceCallId must have at least 1 character"),
        (with_payload(tenantId="other"), "payload.tenantId must be the same as tenantId"),
        (
            with_payload(dueAt="tomorrow"),
            "payload.dueAt must be a date and time in ISO 8601, such as 2026-01-01T12:00:00Z",
        ),
        (
            with_payload(dueAt="2030-01-01T12:00:00"),
            "payload.dueAt must have a UTC offset, such as 2026-01-01T12:00:00Z",
        ),
        (with_payload(dueAt=1_893_456_000_000), "payload.dueAt must be a string"),
        (
            {**ENVELOPE, "correlationId": "x" * 1_025},
            "correlationId must have at most 1024 characters",
        ),
    ],
)
def test_a_rejection_names_the_field(data: object, reason: str) -> None:
    with pytest.raises(Rejection) as refused:
        read_command(command(data))
    assert str(refused.value) == reason


def test_a_rejection_repeats_readable_members_of_the_command() -> None:
    bad = command({**with_payload(dueAt="?"), "correlationId": "req-1"})
    message = rejection_message(bad, "payload.dueAt is bad", NOW)
    assert message.channel is Channel.REJECTED
    envelope = json.loads(message.data)
    assert b64decode(envelope["payload"].pop("command")) == bad.data
    assert envelope == {
        "id": message.id,
        "type": "CommandRejected",
        "tenantId": "acme",
        "timestampMs": NOW // 1_000,
        "correlationId": "req-1",
        "causationId": ENVELOPE["id"],
        "payload": {"reason": "payload.dueAt is bad"},
    }


@pytest.mark.parametrize("data", [b"\xff", b"[1]", b'{"id": 3, "tenantId": {}}', b""])
def test_a_rejection_omits_unreadable_members(data: bytes) -> None:
    envelope = json.loads(rejection_message(command(data), "why", NOW).data)
    assert envelope.keys() == {"id", "type", "timestampMs", "payload"}


def test_a_repeated_command_is_rejected_with_the_same_id() -> None:
    first = rejection_message(command(b"bad", 7), "why", NOW)
    again = rejection_message(command(b"bad", 7), "why", NOW)
    other = rejection_message(command(b"bad", 8), "why", NOW)
    assert first.id == again.id != other.id


def test_a_rejection_cuts_a_very_long_command() -> None:
    envelope = json.loads(rejection_message(command(b"x" * 100_000), "why", NOW).data)
    assert b64decode(envelope["payload"]["command"]) == b"x" * 16_384


def test_a_payload_is_kept_to_the_letter() -> None:
    text = '{"big": 12345678901234567890.10, "e":1E+2, "s":"\\u00e9 \u00e9", "twice":1,"twice":2}'
    data = json.dumps(with_payload(payload="HERE")).encode().replace(b'"HERE"', text.encode())
    schedule = read_command(command(data))
    assert isinstance(schedule, Schedule)
    assert schedule.payload == Raw(text.encode())
    nothing = read_command(command(with_payload(payload=None)))
    assert isinstance(nothing, Schedule)
    assert nothing.payload == Raw(b"null")
    without_any = read_command(command(ENVELOPE))
    assert isinstance(without_any, Schedule)
    assert without_any.payload is UNSET


def test_a_payload_may_be_larger_than_the_rest_of_a_command() -> None:
    schedule = read_command(command(with_payload(payload="x" * 200_000)))
    assert isinstance(schedule, Schedule)
    with pytest.raises(Rejection, match="must not be larger than 65536 bytes without"):
        read_command(command(with_payload(payload="x" * 200_000, other="x" * 65_536)))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b'"\xff"', "payload.payload is not UTF-8"),
        (b"[" * 65 + b"]" * 65, "payload.payload is nested deeper than 64 levels"),
    ],
)
def test_an_unfit_payload_is_rejected(payload: bytes, reason: str) -> None:
    data = json.dumps(with_payload(payload="HERE")).encode().replace(b'"HERE"', payload)
    with pytest.raises(Rejection, match=reason):
        read_command(command(data))


CANCEL = {**ENVELOPE, "type": "CancelTimer", "payload": without(PAYLOAD, "dueAt")}


def test_a_cancel_names_the_call() -> None:
    expected = Cancellation(namespace="acme", id="call-1", order=7)
    assert read_command(command(CANCEL)) == expected
    assert read_command(command({**CANCEL, "new": 1, "payload": PAYLOAD})) == expected


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({**CANCEL, "tenantId": "other"}, "payload.tenantId must be the same as tenantId"),
        ({**CANCEL, "payload": {"tenantId": "acme"}}, "payload.serviceCallId is missing"),
        ({**CANCEL, "id": 5}, "id must be a string"),
        ({**CANCEL, "other": "x" * 65_536}, "the command must not be larger than 65536 bytes"),
    ],
)
def test_an_unacceptable_cancel_is_rejected(data: dict[str, Any], reason: str) -> None:
    with pytest.raises(Rejection, match=reason):
        read_command(command(data))


def test_fields_of_the_service_get_their_bus_names() -> None:
    assert reason_of(InvalidInput("execute_at", "is too far")) == "payload.dueAt is too far"
    assert reason_of(InvalidInput("id", "is bad")) == "payload.serviceCallId is bad"


def outcome_of(data: bytes) -> str | Schedule | Cancellation:
    try:
        return read_command(command(data))
    except Rejection as rejection:
        return str(rejection)


@given(st.binary(max_size=300) | json_texts())
def test_any_bytes_are_parsed_or_rejected(data: bytes) -> None:
    outcome = outcome_of(data)
    if isinstance(outcome, str):
        message = rejection_message(command(data), outcome, NOW)
        assert json.loads(message.data)["payload"]["reason"] == outcome
    else:
        assert outcome.order == 7
