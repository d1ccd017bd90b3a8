"""The request of the answer protocol, and the meaning of its answers."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from duetime.delivery.answer_protocol import format_request, read_answer
from duetime.delivery.http_client import HttpAnswer
from duetime.domain.callback import CallbackProtocol, HttpCallback, Payload
from duetime.domain.instants import Instant, format_instant
from duetime.domain.limits import MAX_DELAY_MICROSECONDS, MAX_KEY_CHARACTERS, MAX_REASON_CHARACTERS
from duetime.domain.outcome import Completed, Failed, Outcome, Rescheduled
from duetime.testing.virtual_clock import START_AT
from tests.unit.delivery.claims import claim_of

SENT_AT = START_AT
NOW = Instant(START_AT + 5_000)

key_texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(
    lambda text: text[:MAX_KEY_CHARACTERS]
)


def formatted(payload: Payload, **claim: object) -> bytes:
    callback = HttpCallback(url="http://a/", protocol=CallbackProtocol.ANSWER)
    return format_request(claim_of(callback, **claim), payload)  # type: ignore[arg-type]


def read(body: bytes, *, truncated: bool = False, retry_after_ms: int | None = None) -> Outcome:
    return read_answer(
        HttpAnswer(200, None, body, truncated),
        sent_at=SENT_AT,
        answered_at=NOW,
        retry_after_ms=retry_after_ms,
    )


def failed(body: bytes, *, truncated: bool = False) -> Failed:
    outcome = read(body, truncated=truncated)
    assert isinstance(outcome, Failed)
    assert (outcome.sent_at, outcome.answered_at) == (SENT_AT, NOW)
    return outcome


def asking_for(next_execute_at: object) -> bytes:
    return json.dumps({"ok": False, "nextExecuteAt": next_execute_at}).encode()


class TestRequest:
    def test_the_request_names_the_timer_and_the_attempt(self) -> None:
        body = formatted(Raw(b'{"a":1}'), execute_at=Instant(START_AT + 120_000), attempt=3)
        assert body == (
            b'{"namespace":"orders","id":"order-42","executeAt":"2030-01-01T00:00:00.120Z",'
            b'"attempt":3,"payload":{"a":1}}'
        )

    @pytest.mark.parametrize(
        "payload", [b'{ "b" : 1.00, "a": 1e5, "a": "\\u00e9" }', b"12345678901234567890123", b'""']
    )
    def test_the_payload_is_included_byte_for_byte(self, payload: bytes) -> None:
        assert formatted(Raw(payload)).endswith(b'"payload":' + payload + b"}")

    def test_no_payload_is_null(self) -> None:
        assert formatted(UNSET).endswith(b'"payload":null}')
        assert formatted(Raw(b"null")).endswith(b'"payload":null}')

    @given(key_texts, key_texts)
    def test_any_key_survives(self, namespace: str, id: str) -> None:
        body = json.loads(formatted(UNSET, namespace=namespace, id=id))
        assert (body["namespace"], body["id"]) == (namespace, id)


class TestCompleting:
    @pytest.mark.parametrize(
        "body",
        [
            b'{"ok":true}',
            b' {\r\n "ok" : true }\n',
            b'{"message": 5, "ok": true, "error": null, "extra": [1e999, {"ok": false}]}',
            '{"note": "schön", "ok": true}'.encode(),
            b'{"ok": true, "nextExecuteAt": "2031-01-01T00:00:00Z"}',
            b'{"ok": true, "nextExecuteAt": "whenever"}',
            b'{"ok": true, "nextExecuteAt": 5}',
        ],
    )
    def test_ok_completes_whatever_else_the_answer_says(self, body: bytes) -> None:
        assert read(body) == Completed(sent_at=SENT_AT, answered_at=NOW)


class TestRescheduling:
    @pytest.mark.parametrize(
        ("text", "instant"),
        [
            ("2030-01-01T00:00:10Z", START_AT + 10_000_000),
            ("2030-01-01T01:00:10+01:00", START_AT + 10_000_000),
            ("2029-12-31T19:00:10.000007-05:00", START_AT + 10_000_007),
            (format_instant(Instant(NOW + MAX_DELAY_MICROSECONDS)), NOW + MAX_DELAY_MICROSECONDS),
        ],
    )
    def test_the_next_instant_is_the_requested_one(self, text: str, instant: int) -> None:
        assert read(asking_for(text)) == Rescheduled(
            sent_at=SENT_AT, answered_at=NOW, next_execute_at=Instant(instant)
        )

    @pytest.mark.parametrize(
        "text", ["1970-01-01T00:00:00Z", "2029-12-31T00:00:00Z", format_instant(SENT_AT)]
    )
    def test_a_past_instant_means_now_and_does_not_jump_the_queue(self, text: str) -> None:
        assert read(asking_for(text)) == Rescheduled(
            sent_at=SENT_AT, answered_at=NOW, next_execute_at=NOW
        )

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            (1893456010, "must be a string"),
            (True, "must be a string"),
            (["2031-01-01T00:00:00Z"], "must be a string"),
            ({}, "must be a string"),
            *(
                (given, "must be a date and time in ISO 8601, such as 2026-01-01T12:00:00Z")
                for given in ("", "tomorrow", "2030-01-01", "2030-02-30T00:00:00Z", "2" * 9_999)
            ),
            ("10000-01-01T00:00:00Z", "must be a date and time in ISO 8601, such as 2026"),
            ("2030-01-01T00:00:10", "must have a UTC offset, such as 2026-01-01T12:00:00Z"),
            ("1969-12-31T23:59:59Z", "must not be before 1970"),
            ("0001-01-01T00:00:00+23:59", "must not be before 1970"),
            ("9999-12-31T23:59:59-23:59", "is too far in the future: at most 100 years"),
            (
                format_instant(Instant(NOW + MAX_DELAY_MICROSECONDS + 1)),
                "is too far in the future: at most 100 years",
            ),
        ],
    )
    def test_an_impossible_instant_fails_the_attempt(self, given: object, problem: str) -> None:
        outcome = failed(asking_for(given))
        assert outcome.error.startswith(f"HTTP 200, but nextExecuteAt {problem}")
        assert not outcome.blames_endpoint


class TestRefusing:
    @pytest.mark.parametrize(
        "body", [b'{"ok": false}', b'{"ok": false, "nextExecuteAt": null, "retry": true}']
    )
    def test_a_refusal_does_not_blame_the_endpoint(self, body: bytes) -> None:
        outcome = failed(body)
        assert outcome.error == 'answered {"ok": false}'
        assert not outcome.blames_endpoint

    @pytest.mark.parametrize(
        ("members", "reason"),
        [
            ({"message": "no stock"}, ": no stock"),
            ({"error": "E17"}, ": E17"),
            ({"message": "no stock", "error": "E17"}, ": no stock"),
            ({"message": {"text": "no stock"}, "error": "E17"}, ": E17"),
            ({"message": " \n", "error": ""}, ""),
            ({"message": 5, "error": None}, ""),
            ({"message": "a\r\nb\x00c\x1b[31m\u202ed\u2028e"}, ": a  b c [31m d e"),
            ({"message": "é" * MAX_REASON_CHARACTERS}, ": " + "é" * MAX_REASON_CHARACTERS),
            ({"message": "x" * 5_000}, ": " + "x" * (MAX_REASON_CHARACTERS - 1) + "…"),
        ],
    )
    def test_the_reason_is_quoted_as_one_short_line(
        self, members: dict[str, object], reason: str
    ) -> None:
        outcome = failed(json.dumps({"ok": False, **members}).encode())
        assert outcome.error == 'answered {"ok": false}' + reason

    def test_retry_after_is_kept_in_the_outcome(self) -> None:
        outcome = read(b'{"ok": false}', retry_after_ms=7_000)
        assert isinstance(outcome, Failed)
        assert outcome.retry_after_ms == 7_000


UNREADABLE = [
    (b"", "it is empty"),
    *((body, "it is not JSON") for body in (b" ", b"OK", b"<html></html>", b'{"ok":true')),
    *((body, "it is not JSON") for body in (b'{"ok":true}{"ok":true}', b"{'ok':true}", b"ok=true")),
    *((body, "it is not JSON") for body in (b'{"ok":True}', b'{"ok":NaN}', b'{"ok":true,}')),
    (b'\xef\xbb\xbf{"ok":true}', "it is not JSON"),
    (b'{"ok":false,"message":"\\ud800"}', "it is not JSON"),
    (b'{"ok":false,"nextExecuteAt":"\\ud800"}', "it is not JSON"),
    *((body, "it is not a JSON object") for body in (b"[]", b"true", b'"ok"', b"null", b"1")),
    (b'[{"ok":true}]', "it is not a JSON object"),
    *((body, "ok is missing") for body in (b"{}", b'{"OK":true}', b'{"data":{"ok":true}}')),
    *(
        (b'{"ok":' + value + b"}", "ok is neither true nor false")
        for value in (b"null", b"1", b"0", b'"true"', b"[true]", b"{}")
    ),
    (b'{"ok":true,"note":"\xff"}', "it is not UTF-8"),
    ('{"ok":true}'.encode("utf-16"), "it is not UTF-8"),
    (b"\x1f\x8b\x08\x00", "it is not UTF-8"),
    (b'{"note":' + b"[" * 60_000 + b"]" * 60_000 + b',"ok":true}', "it is nested too deeply"),
]


def decides(body: bytes) -> bool:
    """Whether the body is a JSON object with a decision, read by another parser."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and isinstance(said.get("ok"), bool)


def reschedules(said: object) -> bool:
    return (
        isinstance(said, dict)
        and said.get("ok") is False
        and isinstance(said.get("nextExecuteAt"), str)
    )


class TestUnreadable:
    @pytest.mark.parametrize(
        ("body", "problem"), UNREADABLE, ids=[repr(body[:30]) for body, _ in UNREADABLE]
    )
    def test_the_error_explains_and_does_not_blame_the_endpoint(
        self, body: bytes, problem: str
    ) -> None:
        outcome = failed(body)
        assert outcome.error == f'HTTP 200, but the answer is not {{"ok": true|false}}: {problem}'
        assert not outcome.blames_endpoint

    def test_the_beginning_of_a_long_answer_decides_nothing(self) -> None:
        outcome = failed(b'{"ok":true}', truncated=True)
        assert outcome.error.endswith("it is longer than 11 bytes")
        assert not outcome.blames_endpoint

    @given(st.binary() | st.text().map(str.encode))
    @example(b'{"ok":true}')
    @example(b'{"ok":false,"nextExecuteAt":"2031-01-01T00:00:00Z"}')
    def test_bytes_fail_the_attempt_unless_they_happen_to_be_an_answer(self, body: bytes) -> None:
        assert isinstance(read(body), Failed) or decides(body)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(),
            lambda inner: st.dictionaries(
                st.sampled_from(["ok", "nextExecuteAt", "message", "error"]) | st.text(), inner
            ),
            max_leaves=10,
        )
    )
    @example({"ok": True})
    @example({"ok": False, "nextExecuteAt": "2031-01-01T00:00:00Z"})
    def test_only_ok_completes(self, said: object) -> None:
        outcome = read(json.dumps(said).encode())
        is_ok = isinstance(said, dict) and said.get("ok") is True
        # Python writes NaN and Infinity, which are not JSON.
        if is_ok and "NaN" not in json.dumps(said) and "Infinity" not in json.dumps(said):
            assert isinstance(outcome, Completed)
        elif not is_ok:
            assert isinstance(outcome, Failed) or reschedules(said)

    def test_the_oracles_for_random_answers_are_strict(self) -> None:
        assert not any(map(decides, (b"", b"true", b'{"ok":1}', b'["ok"]', b'{"ok":tru')))
        assert not any(map(reschedules, (None, {"ok": False}, {"nextExecuteAt": "2031"})))
