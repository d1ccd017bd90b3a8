"""The data that a receiver reads from a callback."""

import json

import pytest

from duetime.cli.output.received_callback import (
    ReceivedCallback,
    Signature,
    json_line,
    readable_line,
)
from duetime.domain.instants import Instant

DUE_AT = Instant(1_893_456_000_000_000)
DUE = "2030-01-01T00:00:00Z"


def received(target: str = "/", body: bytes = b"", **headers: str) -> ReceivedCallback:
    callback = ReceivedCallback(Instant(DUE_AT + 1_200))
    callback.method = "POST"
    callback.target = target
    callback.body = body
    callback.answer_body = b'{"ok":true}'
    callback.headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return callback


@pytest.mark.parametrize(
    ("target", "body"),
    [
        (f"/?due={DUE}", b""),
        ("/?due=2030-01-01T01:00:00%2B01:00", b'{"due": "2020-01-01T00:00:00Z"}'),
        ("/", f'{{"execute_at": "{DUE}"}}'.encode()),
        ("/", f'{{"executeAt": "{DUE}", "payload": null}}'.encode()),
    ],
)
def test_lateness_is_measured_from_the_instant_that_a_callback_carries(
    target: str, body: bytes
) -> None:
    assert received(target, body).lateness_ms == 1.2


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/", b""),
        ("/?due=soon", b""),
        ("http://[/?due", b""),
        ("/", b"not json"),
        ("/", b'{"due": 5}'),
        ("/", b"[" * 5_000),
        ("/", b"\xff\xfe"),
    ],
)
def test_without_an_instant_the_lateness_is_unknown(target: str, body: bytes) -> None:
    callback = received(target, body)
    assert callback.lateness_ms is None
    assert "  -  " in readable_line(callback).plain
    assert json.loads(json_line(callback))["lateness_ms"] is None


def test_a_callback_is_shown_on_one_short_line() -> None:
    callback = received(
        f"/hook?due={DUE}",
        b'{"text": "' + b"x" * 500 + b'\n"}',
        webhook_id="01980000-0000-7000-8000-00000000abcd",
        timer_attempt="1",
    )
    line = readable_line(callback).plain
    assert line.startswith(
        f"00:00:00.001Z  POST /hook?due={DUE}  …0000abcd  attempt 1  1.2 ms late  "
    )
    assert line.endswith('  → 200 {"ok":true}')
    assert len(line) < 220
    assert line.isprintable()


def timer_callback(payload: str, attempt: int = 1) -> bytes:
    return (
        f'{{"namespace":"orders","id":"order-42","executeAt":"{DUE}","attempt":{attempt},'
        f'"payload":{payload}}}'
    ).encode()


@pytest.mark.parametrize(
    ("payload", "shown"), [('{"a": 1}', '{"a": 1}'), ("null", "(no payload)"), ('"x"', '"x"')]
)
def test_a_callback_that_names_its_timer_is_shown_with_that_name(payload: str, shown: str) -> None:
    callback = received("/hook", timer_callback(payload), webhook_id="w1", timer_attempt="1")
    assert readable_line(callback).plain == (
        f"00:00:00.001Z  POST /hook  orders/order-42  attempt 1  1.2 ms late  {shown}"
        '  → 200 {"ok":true}'
    )


@pytest.mark.parametrize("headers", [{"timer_attempt": "2"}, {}])
def test_a_planned_retry_is_not_called_late(headers: dict[str, str]) -> None:
    callback = received("/hook", timer_callback("1", attempt=2), **headers)
    callback.answer_status, callback.answer_body = 503, b""
    assert callback.lateness_ms is None
    assert readable_line(callback).plain == (
        "00:00:00.001Z  POST /hook  orders/order-42  attempt 2  retry  1  → 503"
    )
    line = json.loads(json_line(callback))
    assert (line["attempt"], line["lateness_ms"]) == ("2", None)
    assert line["answer"] == {"status": 503, "body": None}


def test_the_json_line_of_a_v1_callback_has_only_its_payload() -> None:
    line = json.loads(json_line(received("/", timer_callback('{"a": [1]}'))))
    found = {name: line[name] for name in ("namespace", "id", "attempt", "lateness_ms", "payload")}
    assert found == {
        "namespace": "orders",
        "id": "order-42",
        "attempt": "1",
        "lateness_ms": 1.2,
        "payload": {"a": [1]},
    }


@pytest.mark.parametrize(
    "body",
    [
        b'{"namespace":"n","id":"i","executeAt":"2030-01-01T00:00:00Z","attempt":1}',
        b'{"namespace":"n","id":"i","executeAt":"2030-01-01T00:00:00Z","attempt":"1","payload":1}',
        b'{"namespace":"n","id":1,"executeAt":"2030-01-01T00:00:00Z","attempt":1,"payload":1}',
        b'{"namespace":"\xff","id":"i","executeAt":"x","attempt":1,"payload":1}',
    ],
)
def test_a_payload_that_resembles_a_v1_callback_is_shown_whole(body: bytes) -> None:
    callback = received("/", body, webhook_id="w1")
    assert "  w1  attempt -  " in readable_line(callback).plain
    assert callback.payload_text == body


def test_a_json_line_has_the_payload_as_written_on_one_line() -> None:
    body = b'{"price": 1.10,\n "big": 1180591620717411303424}'
    for callback in (received("/", body), received("/", timer_callback(body.decode()))):
        (line,) = json_line(callback).splitlines()
        assert '"payload":{"price":1.10,"big":1180591620717411303424}' in line


def test_a_json_line_has_every_field() -> None:
    callback = received("/x", b'{"a": 1}', webhook_id="w1", timer_attempt="1")
    assert json.loads(json_line(callback)) == {
        "arrived_at": "2030-01-01T00:00:00.001200Z",
        "method": "POST",
        "target": "/x",
        "webhook_id": "w1",
        "namespace": None,
        "id": None,
        "attempt": "1",
        "lateness_ms": None,
        "headers": {"webhook-id": "w1", "timer-attempt": "1"},
        "payload": {"a": 1},
        "signature": None,
        "answer": {"status": 200, "body": '{"ok":true}'},
    }


@pytest.mark.parametrize(
    ("signature", "words", "member"),
    [
        (None, "", None),
        (Signature(None), "signature verified  ", {"verified": True, "problem": None}),
        (
            Signature("it is old"),
            "signature refused: it is old  ",
            {"verified": False, "problem": "it is old"},
        ),
    ],
)
def test_the_outcome_of_the_check_of_signatures_is_shown(
    signature: Signature | None, words: str, member: object
) -> None:
    callback = received("/hook", b"{}")
    callback.signature = signature
    assert readable_line(callback).plain.endswith(f'  {{}}  {words}→ 200 {{"ok":true}}')
    assert json.loads(json_line(callback))["signature"] == member
