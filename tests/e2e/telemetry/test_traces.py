"""Traces: from the client's span to the create, by a link to the attempt, and to the endpoint."""

import asyncio
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from duetime import __version__
from duetime.clock import SystemClock
from tests.e2e.telemetry.trace_collector import TraceCollector, attributes_of
from tests.polling import PATIENCE_SECONDS
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.server_process import ServerDied, ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms, timer_body
from tests.real_server.v1_requests import v1_body

CLIENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = CLIENT[:-2] + "00"
ENCRYPTION_KEY = f"k1:{b64encode(bytes(32)).decode()}"
CLIENT_TRACE, CLIENT_SPAN = CLIENT[3:35], CLIENT[36:52]
CONSOLE = {"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_SCHEDULE_DELAY": "10"}


@pytest.fixture
async def collector() -> AsyncIterator[TraceCollector]:
    async with TraceCollector() as collector:
        yield collector


async def test_a_create_is_part_of_the_clients_trace_and_the_attempt_links_to_it(
    tmp_path: Path, collector: TraceCollector, receiver: CallbackReceiver
) -> None:
    attributes = {"OTEL_RESOURCE_ATTRIBUTES": "service.instance.id=pod-1"}
    settings = {**collector.settings, **attributes}
    async with (
        ServerProcess(tmp_path, **settings) as server,
        server.client() as api,
    ):
        api.headers.update({"traceparent": CLIENT, "X-Request-Id": "req-17"})
        url = f"{receiver.url}/due?token=secret-query"
        callback = {
            "headers": {"Authorization": "Bearer secret-header", "traceparent": UNSAMPLED},
            "payload": {"body": "secret-payload"},
        }
        timer_id = await create_timer(api, url, in_ms(100), callback=callback)
        (request,) = await receiver.wait_for(1)
        # A busy machine may have refused the first try, because its instant had passed.
        *_, created = await collector.wait_for_spans(1, lambda span: span.name == "createTimer")
        (attempt,) = await collector.wait_for_spans(1, lambda span: span.name == "timer.attempt")

        assert created.kind == OtlpSpan.SPAN_KIND_SERVER
        assert (created.trace_id.hex(), created.parent_span_id.hex()) == (CLIENT_TRACE, CLIENT_SPAN)
        assert attributes_of(created) == {
            "http.request.method": "POST",
            "http.route": "/timers",
            "http.response.status_code": 201,
            "duetime.namespace": "default",
            "duetime.request_id": "req-17",
        }
        assert attempt.kind == OtlpSpan.SPAN_KIND_CLIENT
        assert attempt.parent_span_id == b""
        assert attempt.trace_id != created.trace_id
        (link,) = attempt.links
        assert (link.trace_id, link.span_id) == (created.trace_id, created.span_id)
        found = attributes_of(attempt)
        lateness_seconds = found.pop("duetime.lateness_seconds")
        assert isinstance(lateness_seconds, float)
        assert 0 <= lateness_seconds < PATIENCE_SECONDS
        assert found == {
            "duetime.namespace": "default",
            "duetime.timer.id": timer_id,
            "duetime.attempt": 1,
            "duetime.delivery_id": request.headers["webhook-id"],
            "duetime.callback.type": "http",
            "duetime.outcome": "completed",
            "http.request.method": "POST",
            "server.address": "127.0.0.1",
            "server.port": int(receiver.url.rpartition(":")[2]),
            "url.scheme": "http",
        }
        sent = request.headers["traceparent"]
        assert sent[:52] == f"00-{attempt.trace_id.hex()}-{attempt.span_id.hex()}"
        assert int(sent[53:], 16) & 1, "sampled"
        resource = collector.resources()[0]
        assert resource["service.name"] == "duetime"
        assert resource["service.version"] == __version__
        assert resource["service.instance.id"] == "pod-1"
        exported = b"".join(each.body for each in collector.requests)
        for secret in (b"secret-query", b"secret-header", b"secret-payload", b"Bearer"):
            assert secret not in exported


async def test_metrics_have_the_trace_of_an_attempt_as_an_example(
    tmp_path: Path, collector: TraceCollector, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path, **collector.settings) as server, server.client() as api:
        await create_timer(api, f"{receiver.url}/due", in_ms(100))
        (attempt,) = await collector.wait_for_spans(1, lambda span: span.name == "timer.attempt")
        scrape = await api.get("/metrics", headers={"Accept": "application/openmetrics-text"})
        example = f'# {{trace_id="{attempt.trace_id.hex()}"}}'
        examples = [line for line in scrape.text.splitlines() if example in line]
        assert {line.partition("{")[0] for line in examples} == {
            "duetime_lateness_seconds_bucket",
            "duetime_attempt_duration_seconds_bucket",
        }


async def test_requests_by_the_usual_path_are_traced_and_probes_are_not(
    tmp_path: Path, collector: TraceCollector, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path, **collector.settings) as server, server.client() as api:
        for path in ("/healthz", "/livez", "/readyz"):
            await api.get(path)
        # A malformed context is ignored: the request begins a trace.
        malformed = {"traceparent": CLIENT.upper()}
        body = v1_body("v1", f"{receiver.url}/v1", in_ms(100))
        await api.post("/api/v1/timers", json=body, headers=malformed)
        await api.get("/timers/nothing", headers={"traceparent": CLIENT})
        await api.get("/nowhere/secret-path", headers={"traceparent": CLIENT})
        await receiver.wait_for(1)
        await collector.wait_for_spans(4)
        spans = {span.name: span for span in collector.spans()}
        assert spans.keys() == {"createTimerV1", "getTimer", "request", "timer.attempt"}
        assert spans["createTimerV1"].parent_span_id == b""
        assert spans["timer.attempt"].links[0].span_id == spans["createTimerV1"].span_id
        assert attributes_of(spans["getTimer"])["http.response.status_code"] == 400
        assert attributes_of(spans["request"])["http.response.status_code"] == 404
        assert b"secret-path" not in b"".join(each.body for each in collector.requests)


async def test_a_failed_attempt_is_an_error_without_the_words_of_the_answer(
    tmp_path: Path, collector: TraceCollector, receiver: CallbackReceiver
) -> None:
    receiver.reaction = Answer(500, b"secret-answer")
    async with ServerProcess(tmp_path, **collector.settings) as server, server.client() as api:
        await create_timer(api, f"{receiver.url}/due", in_ms(100))
        (attempt,) = await collector.wait_for_spans(1, lambda span: span.name == "timer.attempt")
        assert attempt.status.code == Status.STATUS_CODE_ERROR
        found = attributes_of(attempt)
        assert (found["duetime.outcome"], found["error.type"]) == ("failed", "500")
        assert found["http.response.status_code"] == 500
        assert b"secret-answer" not in b"".join(each.body for each in collector.requests)
        line = await server.wait_for_log("timer.failed")
        assert line["trace_id"] == attempt.trace_id.hex()
        assert line["span_id"] == attempt.span_id.hex()


async def test_the_clients_decision_not_to_sample_counts_for_the_attempt_too(
    tmp_path: Path, collector: TraceCollector, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path, **collector.settings) as server, server.client() as api:
        unsampled = {"traceparent": UNSAMPLED}
        body = timer_body(f"{receiver.url}/unsampled", in_ms(50))
        assert (await api.post("/timers", json=body, headers=unsampled)).status_code == 201
        (request,) = await receiver.wait_for(1)
        sent = request.headers["traceparent"]
        assert sent.endswith("-00")
        assert sent[3:35] != CLIENT_TRACE
        await create_timer(api, f"{receiver.url}/sampled", in_ms(50))
        await collector.wait_for_spans(2)
        assert len(collector.spans()) == 2


async def test_nothing_is_sampled_if_the_ratio_is_zero(
    tmp_path: Path, collector: TraceCollector, receiver: CallbackReceiver
) -> None:
    settings = {
        **collector.settings,
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0",
    }
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        await create_timer(api, f"{receiver.url}/unsampled", in_ms(50))
        (request,) = await receiver.wait_for(1)
        assert request.headers["traceparent"].endswith("-00")
        await server.stop()
    assert collector.spans() == []


async def test_without_an_exporter_the_users_own_header_is_sent_and_nothing_else(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        api.headers["traceparent"] = CLIENT
        await create_timer(api, f"{receiver.url}/plain", in_ms(50))
        own = {"headers": {"traceparent": UNSAMPLED}}
        await create_timer(api, f"{receiver.url}/own", in_ms(50), callback=own)
        await receiver.wait_for(2)
        assert "traceparent" not in receiver.of("/plain")[0].headers
        assert receiver.of("/own")[0].headers["traceparent"] == UNSAMPLED


@pytest.mark.parametrize("encryption", [{}, {"ENCRYPTION_KEYS": ENCRYPTION_KEY}])
async def test_the_context_of_the_create_outlives_a_restart_and_a_change_of_the_instant(
    tmp_path: Path,
    collector: TraceCollector,
    receiver: CallbackReceiver,
    encryption: dict[str, str],
) -> None:
    async with ServerProcess(tmp_path, **encryption) as server:
        async with server.client() as api:
            api.headers["traceparent"] = CLIENT
            body = v1_body("late", f"{receiver.url}/late", in_ms(3_600_000), payload={"a": 1})
            assert (await api.post("/api/v1/timers", json=body)).status_code == 200
        await server.kill()
        server_with_traces = ServerProcess(tmp_path, **collector.settings, **encryption)
        async with server_with_traces, server_with_traces.client() as api:
            moved = await api.put("/api/v1/timers/default/late", json={"executeIn": "1ms"})
            assert moved.status_code == 200, moved.text
            assert "traceparent" not in moved.text
            (attempt,) = await collector.wait_for_spans(
                1, lambda span: span.name == "timer.attempt"
            )
            (link,) = attempt.links
            assert (link.trace_id.hex(), link.span_id.hex()) == (CLIENT_TRACE, CLIENT_SPAN)


async def test_a_repeated_create_may_have_another_context(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        v1 = v1_body("same", f"{receiver.url}/a", in_ms(3_600_000))
        platform = timer_body(f"{receiver.url}/b", in_ms(3_600_000), idempotency_key="same")
        for path, body, created in (("/api/v1/timers", v1, 200), ("/timers", platform, 201)):
            first = await api.post(path, json=body, headers={"traceparent": CLIENT})
            again = await api.post(path, json=body, headers={"traceparent": UNSAMPLED})
            third = await api.post(path, json=body)
            assert [each.status_code for each in (first, again, third)] == [created, 200, 200]


async def test_a_collector_that_hangs_delays_neither_timers_nor_the_stop(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_BSP_SCHEDULE_DELAY": "10",
            "OTEL_BSP_MAX_QUEUE_SIZE": "8",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4",
        }
        async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
            for number in range(50):
                await create_timer(api, f"{receiver.url}/{number}", in_ms(50))
            await receiver.wait_for_total(50)
            line = await server.wait_for_log("traces.export_troubled")
            assert "dropping" in str(line["problem"]).lower()
            clock = SystemClock()
            began = clock.monotonic()
            assert await server.stop() == 0
            assert clock.monotonic() - began < 10
            troubled = [each for each in server.logs if each["event"] == "traces.export_troubled"]
            assert len(troubled) == 1


async def test_a_collector_that_is_away_is_reported_once(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_BSP_SCHEDULE_DELAY": "10",
    }
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        await create_timer(api, f"{receiver.url}/due", in_ms(50))
        await receiver.wait_for(1)
        line = await server.wait_for_log("traces.export_troubled")
        assert line["level"] == "warning"
        assert await server.stop() == 0


async def test_trouble_with_a_collector_is_reported_without_its_secrets(tmp_path: Path) -> None:
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:sk-password@127.0.0.1:9/?token=sk-query",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer sk-header",
        "OTEL_BSP_SCHEDULE_DELAY": "10",
        "LOG_LEVEL": "trace",
    }
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        await api.get("/timers")
        line = await server.wait_for_log("traces.export_troubled")
        assert "127.0.0.1" in str(line["problem"])
        assert await server.stop() == 0
    assert "sk-" not in str(server.logs)


async def test_a_variable_that_is_not_used_is_reported_once_by_a_stable_name(
    tmp_path: Path,
) -> None:
    settings = {**CONSOLE, "OTEL_RESOURCE_ATTRIBUTES": "a=b,,c"}
    async with ServerProcess(tmp_path, **settings) as server:
        line = await server.wait_for_log("traces.setting_ignored")
        assert line["level"] == "warning"
        assert await server.stop() == 0
    problems = [str(each.get("problem")) for each in server.logs if "problem" in each]
    assert len(set(problems)) == len(problems) == 2, "one for each wrong attribute"
    assert all("resource attribute" in problem for problem in problems)
    assert not [each for each in server.logs if " " in str(each["event"])]


async def test_spans_can_go_to_the_console(tmp_path: Path) -> None:
    settings = {**CONSOLE, "OTEL_BSP_MAX_QUEUE_SIZE": "10"}
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        await api.get("/timers")
        assert await server.stop() == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"OTEL_TRACES_EXPORTER": "nonsense"}, "OTEL_TRACES_EXPORTER=nonsense is not installed"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "opentelemetry-exporter-otlp-proto-grpc",
        ),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"},
            "OTEL_EXPORTER_OTLP_PROTOCOL must be one of",
        ),
        (
            {
                "OTEL_TRACES_EXPORTER": "otlp",
                "OTEL_EXPORTER_OTLP_HEADERS": "Authorization: Bearer sk-secret",
            },
            "OTEL_EXPORTER_OTLP_HEADERS must be headers",
        ),
        ({**CONSOLE, "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "OTEL_BSP_MAX_QUEUE_SIZE must be a whole"),
        ({**CONSOLE, "OTEL_TRACES_SAMPLER": "nonsense"}, "OTEL_TRACES_SAMPLER must be one of"),
        # The SDK reads the first one when it is imported, and the second one later.
        (
            {**CONSOLE, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "x"},
            "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be a non-negative integer",
        ),
        (
            {**CONSOLE, "OTEL_ATTRIBUTE_COUNT_LIMIT": "x"},
            "OTEL_ATTRIBUTE_COUNT_LIMIT must be a non-negative integer",
        ),
    ],
)
async def test_traces_that_cannot_be_exported_are_refused_at_the_start(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(ServerDied, match=message) as died:
        await asyncio.wait_for(ServerProcess(tmp_path, **settings).start(), PATIENCE_SECONDS)
    assert "Traceback" not in str(died.value)
    assert "sk-" not in str(died.value)
