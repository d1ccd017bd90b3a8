"""The published AsyncAPI document and schemas match the messages."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import UNSET, json

from duetime.bus.asyncapi import ENVELOPES, EXAMPLES, asyncapi_document, files, json_schema
from duetime.bus.commands import Rejection, read_command
from duetime.bus.messages import (
    DUE_TIME_REACHED,
    SCHEDULE_TIMER,
    DueTimeReached,
    DueTimeReachedEnvelope,
    ScheduleTimer,
    ScheduleTimerEnvelope,
    encode,
)
from duetime.bus.rejections import rejection_message
from duetime.domain.instants import Instant
from duetime.ports.bus import Channel, ReceivedCommand
from duetime.service.bus_scheduling import Schedule

ROOT = Path(__file__).resolve().parents[3]
NOON = "2026-01-01T12:00:00Z"


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(name))


def command(**changes: object) -> dict[str, object]:
    return {**EXAMPLES["ScheduleTimer"], **changes}


def test_files_are_up_to_date() -> None:
    rewrite = "rewrite it with: .venv/bin/python -m duetime.bus.asyncapi"
    for path, content in files().items():
        assert (ROOT / path).read_bytes() == content, f"{path}: {rewrite}"


@pytest.mark.parametrize("name", ENVELOPES)
def test_every_schema_is_valid_and_accepts_its_example(name: str) -> None:
    schema = json_schema(name)
    Draft202012Validator.check_schema(schema)
    for example in schema["examples"]:
        validator(name).validate(example)


def test_the_example_of_a_command_is_accepted() -> None:
    schedule = read_command(ReceivedCommand(data=json.encode(command()), order=1))
    assert isinstance(schedule, Schedule)
    assert (schedule.namespace, schedule.id, schedule.correlation_id) == (
        "acme",
        "call-42",
        "req-7f3a",
    )


def test_real_messages_fit_their_schemas() -> None:
    schedule = ScheduleTimerEnvelope(
        id="1",
        type=SCHEDULE_TIMER,
        tenant_id="acme",
        timestamp_ms=1,
        payload=ScheduleTimer(tenant_id="acme", service_call_id="c", due_at=NOON),
    )
    event = DueTimeReachedEnvelope(
        id="1",
        type=DUE_TIME_REACHED,
        tenant_id="acme",
        aggregate_id="c",
        timestamp_ms=1,
        correlation_id=UNSET,
        payload=DueTimeReached(tenant_id="acme", service_call_id="c", reached_at=NOON),
    )
    validator("ScheduleTimer").validate(json.decode(encode(schedule)))
    validator("DueTimeReached").validate(json.decode(encode(event)))
    for data in (b"", b"\xff", json.encode(command(payload=5)), b'{"id": 5, "tenantId": null}'):
        rejection = rejection_message(ReceivedCommand(data=data, order=1), "why", Instant(0))
        validator("CommandRejected").validate(json.decode(rejection.data))


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "StartTimer"},
        {"id": ""},
        {"tenantId": "x" * 256},
        {"timestampMs": -1},
        {"correlationId": 5},
        {"payload": {"tenantId": "acme", "serviceCallId": "c"}},
        {"payload": {"tenantId": "acme", "serviceCallId": "", "dueAt": NOON}},
    ],
)
def test_schema_and_service_refuse_the_same(changes: dict[str, object]) -> None:
    assert not validator("ScheduleTimer").is_valid(command(**changes))
    with pytest.raises(Rejection):
        read_command(ReceivedCommand(data=json.encode(command(**changes)), order=1))


def test_unknown_members_are_allowed() -> None:
    more = command(version=2, causationId=None)
    validator("ScheduleTimer").validate(more)
    read_command(ReceivedCommand(data=json.encode(more), order=1))


def test_every_channel_has_its_message_and_operation() -> None:
    document: Any = json.decode(asyncapi_document())
    assert {each["address"] for each in document["channels"].values()} == set(Channel)
    described = {
        (each["action"], document["channels"][each["channel"]["$ref"].split("/")[-1]]["address"])
        for each in document["operations"].values()
    }
    assert described == {
        ("receive", Channel.COMMANDS),
        ("send", Channel.EVENTS),
        ("send", Channel.REJECTED),
    }
    for message in document["components"]["messages"].values():
        assert message["payload"]["$ref"].split("/")[-1] in document["components"]["schemas"]
