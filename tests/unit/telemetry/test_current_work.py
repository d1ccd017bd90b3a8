"""Ids of requests and trace contexts: the well-formed ones are taken, all others are not."""

import io
import json
from contextvars import copy_context

import pytest
import structlog

from duetime.telemetry.current_work import (
    CURRENT_WORK,
    UNSAMPLED_ATTEMPT,
    CurrentWork,
    outgoing_traceparent,
    request_id_of,
    sampled_trace_id,
    traceparent_of,
    work_of,
)
from duetime.telemetry.logs import configure_logs

PARENT = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("given", [b"a", b"req-1.2:3/4=5@6+7", b"x" * 128])
def test_a_well_formed_request_id_is_taken(given: bytes) -> None:
    assert request_id_of(given) == given


@pytest.mark.parametrize("blank", [b" ", b"\t", b" \t "])
def test_blanks_around_a_value_are_no_part_of_it(blank: bytes) -> None:
    assert request_id_of(b"a" + blank) == request_id_of(blank + b"a") == b"a"
    assert traceparent_of(PARENT + blank) == traceparent_of(blank + PARENT) == PARENT.decode()


@pytest.mark.parametrize(
    "given",
    [None, b"", b"x" * 129, b" ", b"a b", b"a\tb", b"a\x1b[0m", b"<b>", b"\xff", b'"', b"a\n"],
)
def test_any_other_gets_a_new_one(given: bytes | None) -> None:
    new = request_id_of(given)
    assert len(new) == 16
    assert request_id_of(given) != new


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (PARENT, PARENT.decode()),
        (PARENT[:-2] + b"00", PARENT.decode()[:-2] + "00"),
        # A later version may have more fields; we pass on those that we know.
        (b"cc" + PARENT[2:] + b"-what-comes-next", PARENT.decode()),
        (b"cc" + PARENT[2:] + b".", None),
        (PARENT + b"-more", None),
        (b"ff" + PARENT[2:], None),
        (PARENT.upper(), None),
        (PARENT[:-1], None),
        (b"00-" + b"0" * 32 + PARENT[35:], None),
        (PARENT[:36] + b"0" * 16 + b"-01", None),
        (PARENT + b"\n", None),
        (b"", None),
        (None, None),
    ],
)
def test_only_well_formed_trace_contexts_are_taken(
    given: bytes | None, expected: str | None
) -> None:
    assert traceparent_of(given) == expected


def test_a_trace_context_that_comes_twice_does_not_count() -> None:
    assert work_of([(b"traceparent", PARENT)]).traceparent == PARENT.decode()
    assert work_of([(b"traceparent", PARENT)] * 2).traceparent is None


def test_lines_have_the_ids_of_the_work_until_it_is_over(
    restored_logging: None,
) -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    work = CurrentWork(b"req-1", PARENT.decode())
    token = CURRENT_WORK.set(work)
    structlog.get_logger().info("timer.delivered")
    work.is_over = True
    structlog.get_logger().info("timer.delivered")
    CURRENT_WORK.reset(token)
    during, after = map(json.loads, stream.getvalue().splitlines())
    assert during["request_id"] == "req-1"
    assert during["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert during["span_id"] == "00f067aa0ba902b7"
    assert after.keys() == {"timestamp", "level", "event"}


def test_every_attempt_without_a_span_sends_a_trace_context_of_its_own() -> None:
    def outgoing() -> list[str | None]:
        CURRENT_WORK.set(UNSAMPLED_ATTEMPT)
        assert sampled_trace_id() is None
        return [outgoing_traceparent() for _ in range(1_000)]

    sent = [each for each in copy_context().run(outgoing) if each is not None]
    assert len({each[3:35] for each in sent}) == len({each[36:52] for each in sent}) == 1_000
    for each in sent:
        assert traceparent_of(each.encode()) == each
        assert each.endswith("-00")


def test_nothing_is_sent_outside_of_attempts() -> None:
    def outgoing() -> str | None:
        CURRENT_WORK.set(CurrentWork(b"1", PARENT.decode()))
        return outgoing_traceparent()

    assert outgoing_traceparent() is None
    assert copy_context().run(outgoing) is None
