"""`duetime bus` with a scripted broker."""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from duetime import broker_adapters
from duetime.bus.commands import read_command
from duetime.bus.rejections import rejection_message
from duetime.cli.main import command_line
from duetime.domain.errors import BusUnavailable
from duetime.domain.instants import Instant, parse_instant
from duetime.ports.bus import Channel, OutgoingMessage, ReceivedCommand
from duetime.ports.clock import Clock
from duetime.service.bus_scheduling import Cancellation, Schedule
from duetime.settings import BrokerSettings, RedisBrokerSettings
from duetime.settings.definitions import SETTINGS

NOON = "2030-01-01T12:00:00Z"
URL = "nats://broker:4222"


class ScriptedBus:
    """Yields the given messages to watchers, and records published ones."""

    name = URL

    def __init__(self) -> None:
        self.shown: list[bytes] = []
        self.watched: list[tuple[Channel, int]] = []
        self.published: list[OutgoingMessage] = []
        self.failure: BusUnavailable | None = None
        self.is_closed = False

    async def open(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def close(self) -> None:
        self.is_closed = True

    async def publish(self, message: OutgoingMessage) -> None:
        self.published.append(message)

    async def watch(self, channel: Channel, last: int = 0) -> AsyncGenerator[bytes, None]:
        self.watched.append((channel, last))
        for data in self.shown:
            yield data


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ScriptedBus:
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    bus = ScriptedBus()
    monkeypatch.setattr(broker_adapters, "bus_of", lambda settings, node, clock: bus)
    return bus


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), ["bus", *arguments])


def refused(*arguments: str) -> tuple[int, str]:
    """The exit status, and the single line on standard error."""
    result = invoke(*arguments)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return result.exit_code, line


def envelope(message_type: str, payload: object, **members: object) -> bytes:
    return msgspec.json.encode(
        {"id": "m-1", "type": message_type, "timestampMs": 1, "payload": payload, **members}
    )


def due_time_reached(tenant: str = "acme", call: str = "call-1") -> bytes:
    return envelope(
        "DueTimeReached",
        {"tenantId": tenant, "serviceCallId": call, "reachedAt": NOON},
        tenantId=tenant,
        correlationId="req-7",
    )


def lines_of(result: Result) -> list[str]:
    """The lines below the greeting, without the time of arrival."""
    assert result.exit_code == 0, result.output
    return [line.partition("Z  ")[2] for line in result.stdout.splitlines()[1:]]


def test_a_published_command_is_accepted_by_the_service(broker: ScriptedBus) -> None:
    arguments = ("call-42", "--tenant", "acme", "--at", NOON, "--correlation", "req-7")
    result = invoke("schedule", *arguments, "--broker", URL)
    assert result.exit_code == 0, result.output
    (message,) = broker.published
    assert (message.channel, message.key) == (Channel.COMMANDS, "acme.call-42")
    schedule = read_command(ReceivedCommand(data=message.data, order=1))
    assert isinstance(schedule, Schedule)
    assert (schedule.namespace, schedule.id) == ("acme", "call-42")
    assert schedule.due_at == parse_instant(NOON)
    assert schedule.correlation_id == "req-7"
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"ScheduleTimer {message.id} published: acme/call-42 is due {NOON[:-1]}")
    assert broker.is_closed


def test_a_payload_is_published_to_the_letter(broker: ScriptedBus) -> None:
    arguments = ("c", "--tenant", "t", "--in", "1s", "--payload", '{"n": 1.00}', "--broker", URL)
    result = invoke("schedule", *arguments)
    assert result.exit_code == 0, result.output
    assert b'"payload":{"n": 1.00}' in broker.published[0].data
    refused = invoke("schedule", *arguments[:-3], "{", "--broker", URL)
    assert refused.exit_code == 2
    assert "--payload: is not valid JSON" in refused.output


def test_a_published_cancel_is_accepted_by_the_service(broker: ScriptedBus) -> None:
    result = invoke("cancel", "call-42", "--tenant", "acme", "--broker", URL)
    assert result.exit_code == 0, result.output
    (message,) = broker.published
    assert (message.channel, message.key) == (Channel.COMMANDS, "acme.call-42")
    expected = Cancellation(namespace="acme", id="call-42", order=1)
    assert read_command(ReceivedCommand(data=message.data, order=1)) == expected
    assert result.stdout == f"CancelTimer {message.id} published: acme/call-42\n"


def test_schedule_prints_the_envelope_as_json(broker: ScriptedBus) -> None:
    result = invoke("schedule", "c", "--tenant", "t", "--in", "10s", "--broker", URL, "--json")
    printed = msgspec.json.decode(result.stdout)
    assert printed == msgspec.json.decode(broker.published[0].data)
    assert printed["id"] == broker.published[0].id
    assert "correlationId" not in printed


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["c", "--tenant", "t"], "--at / --in: one of them is needed"),
        (["c", "--tenant", "t", "--in", "x"], "--in: must be a duration"),
        (
            ["x" * 256, "--tenant", "t", "--in", "1s"],
            "the service would reject this command: aggregateId",
        ),
        (["c", "--tenant", "", "--in", "1s"], "the service would reject this command: tenantId"),
    ],
)
def test_a_command_that_the_service_would_reject_is_not_published(
    broker: ScriptedBus, arguments: list[str], line: str
) -> None:
    code, error = refused("schedule", *arguments, "--broker", URL)
    assert code == 2
    assert error.startswith(line)
    assert not broker.published


def test_each_event_is_shown_on_one_line(broker: ScriptedBus) -> None:
    broker.shown = [due_time_reached(), due_time_reached(call="call-2")]
    assert lines_of(invoke("tail", "--broker", URL)) == [
        f"DueTimeReached  acme/call-1  reached {NOON}  correlation req-7",
        f"DueTimeReached  acme/call-2  reached {NOON}  correlation req-7",
    ]
    assert broker.watched == [(Channel.EVENTS, 0)]


def test_old_messages_are_shown_with_last_and_for_rejected_commands_by_default(
    broker: ScriptedBus,
) -> None:
    for arguments in (
        ("--last", "7"),
        ("--channel", "commands"),
        ("--channel", "rejected"),
        ("--channel", "rejected", "--last", "0"),
    ):
        assert invoke("tail", *arguments, "--broker", URL).exit_code == 0
    assert broker.watched == [
        (Channel.EVENTS, 7),
        (Channel.COMMANDS, 0),
        (Channel.REJECTED, 10),
        (Channel.REJECTED, 0),
    ]


def test_a_message_is_shown_with_its_own_timestamp(broker: ScriptedBus) -> None:
    long_ago = {"id": "m-1", "type": "Unknown", "timestampMs": 1_500_000_000_123}
    broker.shown = [
        msgspec.json.encode(long_ago),
        msgspec.json.encode({**long_ago, "timestampMs": "no number"}),
        msgspec.json.encode({**long_ago, "timestampMs": 10**30}),
    ]
    shown = invoke("tail", "--broker", URL).stdout.splitlines()[1:]
    assert shown[0].startswith("2017-07-14 02:40:00.123Z  Unknown  ")
    for line in shown[1:]:
        assert re.match(r"\d\d:\d\d:\d\d\.\d{3}Z  Unknown  ", line)


def test_malformed_commands_are_shown(broker: ScriptedBus) -> None:
    payload = {"tenantId": "acme", "serviceCallId": "c", "dueAt": NOON}
    broker.shown = [
        envelope("ScheduleTimer", payload, tenantId="acme"),
        envelope("ScheduleTimer", {"dueAt": 5}, tenantId="acme"),
        envelope("Unknown", payload, tenantId="acme"),
        b"\x1b[31mnot json",
        b"",
    ]
    due, wrong_payload, unknown, unreadable, empty = lines_of(
        invoke("tail", "--channel", "commands", "--broker", URL)
    )
    assert due == f"ScheduleTimer  acme/c  due {NOON}"
    assert wrong_payload.startswith("ScheduleTimer  acme  {")
    assert unknown.startswith("Unknown  acme  {")
    assert unreadable == "unreadable  -  \\x1b[31mnot json"
    assert empty == "unreadable  -  (empty)"


def test_a_rejected_command_is_shown_with_the_reason_and_its_first_bytes(
    broker: ScriptedBus,
) -> None:
    command = ReceivedCommand(data=b'{"tenantId": "acme", "type":\n 5}', order=1)
    broker.shown = [
        rejection_message(command, "type: expected `str`", Instant(0)).data,
        envelope("CommandRejected", {"reason": "bad\x1b", "command": "no base64"}),
        envelope("CommandRejected", {"reason": "bad", "command": b64encode(b"\xff\x00").decode()}),
    ]
    assert lines_of(invoke("tail", "--channel", "rejected", "--broker", URL)) == [
        'CommandRejected  acme  type: expected `str`  {"tenantId": "acme", "type":\\n 5}',
        "CommandRejected  -  bad\\x1b  no base64",
        "CommandRejected  -  bad  �\\x00",
    ]


def test_tail_filters_by_tenant_and_ends_after_count(broker: ScriptedBus) -> None:
    broker.shown = [due_time_reached(tenant, call) for call in "123" for tenant in ("a", "b")]
    shown = lines_of(invoke("tail", "--tenant", "b", "--count", "2", "--broker", URL))
    assert [line.split()[1] for line in shown] == ["b/1", "b/2"]
    assert broker.is_closed


def test_tail_prints_one_json_line_per_message(broker: ScriptedBus) -> None:
    broker.shown = [msgspec.json.format(due_time_reached(), indent=2), b"nothing\nof ours"]
    result = invoke("tail", "--json", "--broker", URL)
    first, second = result.stdout.splitlines()
    assert msgspec.json.decode(first) == msgspec.json.decode(due_time_reached())
    assert msgspec.json.decode(second) == "nothing\nof ours"
    assert result.stderr.startswith("Watching timer.events at nats://broker:4222")


def test_the_broker_comes_from_the_settings_and_other_settings_are_not_checked(
    broker: ScriptedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[BrokerSettings] = []

    def bus_of(settings: BrokerSettings, node: str, clock: Clock) -> ScriptedBus:
        asked.append(settings)
        return broker

    monkeypatch.setattr(broker_adapters, "bus_of", bus_of)
    Path(".env").write_text("TIMER_BROKER_URL=redis://broker/1\nPORT=nonsense\n")
    assert invoke("tail").exit_code == 0
    Path(".env").unlink()
    Path("duetime.toml").write_text('timer_broker_url = "redis://other"\n')
    assert invoke("tail", "--config", "duetime.toml").exit_code == 0
    names = [each.name for each in asked if isinstance(each, RedisBrokerSettings)]
    assert names == ["redis://broker:6379/1", "redis://other:6379"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "no broker: use --broker, or set TIMER_BROKER_URL"),
        (["--broker", "memory:"], "--broker: only the server itself can reach"),
        (["--broker", "kafka://x"], "--broker: must be nats://host:port or tls://"),
    ],
)
def test_an_impossible_broker_is_refused(
    broker: ScriptedBus, arguments: list[str], line: str
) -> None:
    code, error = refused("tail", *arguments)
    assert code == 2
    assert error.startswith(line)


def test_the_error_does_not_suggest_a_broker_in_memory(broker: ScriptedBus) -> None:
    assert "memory" not in refused("tail", "--broker", "foo")[1]


def test_an_unreachable_broker_is_reported_in_one_line(broker: ScriptedBus) -> None:
    broker.failure = BusUnavailable("no NATS server at nats://broker:4222: connection refused")
    for command in (("tail",), ("schedule", "c", "--tenant", "t", "--in", "1s")):
        assert refused(*command, "--broker", URL) == (3, broker.failure.message)
        assert broker.is_closed


def test_a_silent_broker_is_given_up_after_a_time_limit(
    broker: ScriptedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("duetime.cli.commands.bus.OPEN_SECONDS", 0.01)
    monkeypatch.setattr(broker, "open", never)
    assert refused("tail", "--broker", URL) == (3, f"{URL} did not answer within 0.01 s")
    assert broker.is_closed
