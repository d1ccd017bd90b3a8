"""A fault in tracing fails neither requests nor attempts."""

import asyncio
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from structlog.types import EventDict

from duetime.clock import SystemClock
from duetime.domain.callback import HttpCallback
from duetime.domain.errors import LocalShortage
from duetime.domain.outcome import Completed
from duetime.telemetry.traces.destination import TracedDestination
from duetime.telemetry.traces.exporting import Exporting
from duetime.telemetry.traces.sampling import Sampling, sampling_of
from duetime.telemetry.traces.span_record import SpanRecord
from duetime.telemetry.traces.spans import Spans
from duetime.testing import Hang, RecordingDestination, RunOut, VirtualClock
from tests.integration.server.loopback_server import loopback_server
from tests.integration.server.test_request_ids import REQUESTS, answer_to
from tests.polling import PATIENCE_SECONDS
from tests.unit.api.asgi_client import ApiBench
from tests.unit.delivery.claims import always, claim_of

CALLBACK = HttpCallback(url="https://a.example/")


class BrokenIds(Sampling):
    def sampled_trace_id(self) -> int:
        raise RuntimeError("a fault at the beginning")


class Unexported(Exporting):
    """Spans that go nowhere."""

    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []

    def export(self, span: SpanRecord) -> None:
        self.spans.append(span)


class BrokenExport(Unexported):
    def export(self, span: SpanRecord) -> None:
        raise RuntimeError("a fault at the end")


@pytest.fixture(params=["beginning", "end"])
def broken(request: pytest.FixtureRequest) -> Spans:
    always = sampling_of({})
    if request.param == "beginning":
        return Spans(Unexported(), BrokenIds(always.bound, follows_parent=True), SystemClock())
    return Spans(BrokenExport(), always, SystemClock())


@pytest.fixture
def lines() -> Iterator[list[EventDict]]:
    with capture_logs() as lines:
        yield lines


@pytest.mark.parametrize("name", ["fast create", "usual create", "v1", "no key", "no path"])
async def test_requests_are_answered_and_the_first_fault_is_logged(
    broken: Spans, name: str, lines: list[EventDict]
) -> None:
    head, body, status = REQUESTS[name]
    api = ApiBench(tracer=broken)
    async with asyncio.timeout(PATIENCE_SECONDS), loopback_server(api) as server:
        for _ in range(2):
            answered, ids = await answer_to(server, head + b"\r\n" + body)
            assert (answered, len(ids)) == (status, 1)
    faults = [each for each in lines if each["event"] == "trace.request_broken"]
    assert [each["log_level"] for each in faults] == ["error"]


async def test_an_attempt_has_its_outcome(broken: Spans, lines: list[EventDict]) -> None:
    clock = VirtualClock()
    destination = RecordingDestination(clock)
    traced = TracedDestination(destination, broken, clock)
    outcome = await traced.deliver(claim_of(CALLBACK), always)
    assert isinstance(outcome, Completed)
    assert len(destination.attempts) == 1
    assert [each["event"] for each in lines] == ["trace.broken"]


async def test_an_attempt_that_was_postponed_or_abandoned_still_is(
    broken: Spans, lines: list[EventDict]
) -> None:
    clock = VirtualClock()
    destination = RecordingDestination(clock)
    traced = TracedDestination(destination, broken, clock)
    destination.script("order-42", RunOut(), Hang())
    with pytest.raises(LocalShortage):
        await traced.deliver(claim_of(CALLBACK), always)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await traced.deliver(claim_of(CALLBACK), always)
    assert [each["event"] for each in lines] == ["trace.broken"] * 2
