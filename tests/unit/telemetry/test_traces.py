"""Traces: when they are on, and what is sampled."""

from math import sqrt

import pytest
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, TraceIdRatioBased
from opentelemetry.util.re import parse_env_headers

from duetime.telemetry.traces.configuration import (
    BATCH,
    DELAY,
    HEADERS,
    QUEUE,
    WrongTracing,
    export_queue,
    exporter_names,
    secrets_of,
)
from duetime.telemetry.traces.library_log import MAX_PROBLEM_CHARACTERS, without_secrets
from duetime.telemetry.traces.sampling import sampling_of

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = PARENT[:-2] + "00"
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ()),
        ({"OTEL_TRACES_EXPORTER": ""}, ()),
        ({"OTEL_TRACES_EXPORTER": "none"}, ()),
        ({"OTEL_TRACES_EXPORTER": "none", **ENDPOINT}, ()),
        ({"OTEL_SDK_DISABLED": "True", **ENDPOINT}, ()),
        ({"OTEL_SDK_DISABLED": "false", **ENDPOINT}, ("otlp_proto_http",)),
        (ENDPOINT, ("otlp_proto_http",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/x"}, ("otlp_proto_http",)),
        ({"OTEL_TRACES_EXPORTER": "otlp, console"}, ("otlp_proto_http", "console")),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", **ENDPOINT}, ("otlp_proto_grpc",)),
        (
            {
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
                **ENDPOINT,
            },
            ("otlp_proto_http",),
        ),
        # Other signals have exporters of their own.
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318"}, ()),
    ],
)
def test_the_standard_variables_turn_traces_on(
    environment: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert exporter_names(environment) == expected


def test_a_protocol_that_nobody_speaks_is_refused() -> None:
    environment = {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json", **ENDPOINT}
    with pytest.raises(WrongTracing, match="OTEL_EXPORTER_OTLP_TRACES_PROTOCOL must be one of"):
        exporter_names(environment)


@pytest.mark.parametrize(
    "headers",
    [
        "authorization=Bearer%20key",
        "authorization=Bearer key",
        " a=b , c = d,, e=",
        "x-key=a=b&c:d/e?f",
        "key=value\n",
        "",
    ],
)
def test_headers_as_the_sdk_takes_them_are_taken(
    headers: str, caplog: pytest.LogCaptureFixture
) -> None:
    exporter_names({"OTEL_EXPORTER_OTLP_HEADERS": headers, **ENDPOINT})
    parse_env_headers(headers, liberal=True)
    assert not caplog.records


@pytest.mark.parametrize("variable", HEADERS)
@pytest.mark.parametrize(
    "headers",
    [
        "Authorization: Bearer sk-very-secret",
        "sk-very-secret",
        "a=b,sk-very-secret",
        "=sk-very-secret",
        'a="sk-very-secret"',
        "a=sk-very-secret%0A",
        "a=sk-very-secret%E2%82%AC",
        "a=sk-very-secret;b",
    ],
)
def test_other_headers_are_refused_without_being_shown(variable: str, headers: str) -> None:
    for name in ("otlp", "otlp_proto_http"):
        environment = {variable: headers, "OTEL_TRACES_EXPORTER": name}
        with pytest.raises(WrongTracing, match=f"{variable} must be headers") as refused:
            exporter_names(environment)
        assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    "endpoint", ["u:secret@host:1", "http://u:secret@", "http://u:secret@h:port", "http://[secret"]
)
def test_an_endpoint_that_is_no_url_is_refused_without_being_shown(endpoint: str) -> None:
    with pytest.raises(WrongTracing, match="OTEL_EXPORTER_OTLP_ENDPOINT must be a URL") as refused:
        exporter_names({"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    ("queue", "batch", "expected"),
    [
        ("", "", (2048, 512)),
        ("10", "", (10, 10)),
        ("600", "", (600, 512)),
        ("600", "600", (600, 600)),
        ("4000", "1000", (4000, 1000)),
    ],
)
def test_an_export_takes_no_more_spans_than_may_wait(
    queue: str, batch: str, expected: tuple[int, int]
) -> None:
    environment = {"OTEL_BSP_MAX_QUEUE_SIZE": queue, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": batch}
    assert export_queue(environment)[:2] == expected


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        *(
            ({variable: value}, f"{variable} must be a whole number")
            for variable in (QUEUE, BATCH, DELAY)
            for value in ("-1", "0", "x", "1.5", "9" * 5_000)
        ),
        ({QUEUE: "10", BATCH: "11"}, f"{BATCH} must be at most {QUEUE}, which is 10"),
    ],
)
def test_a_wrong_queue_is_refused(environment: dict[str, str], message: str) -> None:
    with pytest.raises(WrongTracing, match=message):
        export_queue(environment)


def test_problems_have_no_secrets() -> None:
    headers = "authorization=Bearer%20sk-very-secret,x-tenant=1"
    words = "'Bearer sk-very-secret' at http://u:p@w@host:1/a?token=sk-q/v1/traces (host='10.1')"
    problem = without_secrets(words, secrets_of({"OTEL_EXPORTER_OTLP_HEADERS": headers}))
    assert problem == "'...' at http://host:1/a?... (host='10.1')"
    assert len(without_secrets("//" * 1_000_000, ())) <= MAX_PROBLEM_CHARACTERS


def sampler(name: str, argument: str = "") -> dict[str, str]:
    return {"OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": argument}


@pytest.mark.parametrize(
    ("environment", "root", "sampled_parent", "unsampled_parent"),
    [
        ({}, True, True, False),
        (sampler("always_on"), True, True, True),
        (sampler("always_off"), False, False, False),
        (sampler("parentbased_always_off"), False, True, False),
        (sampler("parentbased_traceidratio", "0"), False, True, False),
        (sampler("parentbased_traceidratio"), True, True, False),
        (sampler("traceidratio", "0"), False, False, False),
    ],
)
def test_standard_samplers(
    environment: dict[str, str], root: bool, sampled_parent: bool, unsampled_parent: bool
) -> None:
    sampling = sampling_of(environment)
    assert sampling.picks(None) == root
    assert sampling.picks(PARENT) == sampled_parent
    assert sampling.picks(UNSAMPLED) == unsampled_parent


@pytest.mark.parametrize(
    ("environment", "traced_create", "untraced_create"),
    [
        ({}, True, False),
        (sampler("always_on"), True, True),
        (sampler("always_off"), False, False),
        (sampler("parentbased_always_off"), True, False),
        (sampler("parentbased_traceidratio", "0"), True, False),
        (sampler("traceidratio", "0"), False, False),
        (sampler("traceidratio", "1"), True, True),
    ],
)
def test_samplers_for_attempts(
    environment: dict[str, str], traced_create: bool, untraced_create: bool
) -> None:
    sampling = sampling_of(environment)
    assert sampling.picks_attempt(PARENT) == traced_create
    assert sampling.picks_attempt(UNSAMPLED) == untraced_create


@pytest.mark.parametrize("share", [0.01, 0.3, 0.999])
def test_the_attempts_to_skip_are_those_of_a_draw_for_each(share: float) -> None:
    sampling, draws = sampling_of(sampler("traceidratio", str(share))), 20_000
    skipped = [sampling.next_skipped() for _ in range(draws)]
    for number in range(3):
        likelihood = share * (1 - share) ** number
        deviation = sqrt(draws * likelihood * (1 - likelihood))
        assert abs(skipped.count(number) - draws * likelihood) < 6 * deviation
    mean, deviation = (1 - share) / share, sqrt(1 - share) / share
    assert abs(sum(skipped) / draws - mean) < 6 * deviation / sqrt(draws)


def test_all_attempts_are_skipped_or_none() -> None:
    assert sampling_of({}).next_skipped() == 0
    assert sampling_of(sampler("always_off")).next_skipped() > 2**60


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (sampler("jaeger_remote"), "OTEL_TRACES_SAMPLER must be one of parentbased_always_on, "),
        (sampler("parentbased_"), "OTEL_TRACES_SAMPLER must be one of"),
        *(
            (sampler(name, argument), "OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1")
            for name in ("traceidratio", "parentbased_traceidratio")
            for argument in ("much", "2", "-0.1", "nan", "inf")
        ),
    ],
)
def test_a_wrong_sampler_does_not_sample_everything(
    environment: dict[str, str], message: str
) -> None:
    with pytest.raises(WrongTracing, match=message):
        sampling_of(environment)


def test_one_percent_is_one_percent_and_the_sdk_would_agree() -> None:
    sampling = sampling_of(sampler("parentbased_traceidratio", "0.01"))
    picked = sum(sampling.picks(None) for _ in range(100_000))
    assert 700 < picked < 1_300
    judge = ParentBased(TraceIdRatioBased(0.01))
    for _ in range(1_000):
        trace_id = sampling.sampled_trace_id()
        assert 0 < trace_id < 1 << 128
        assert judge.should_sample(None, trace_id, "x").decision is Decision.RECORD_AND_SAMPLE


def test_a_ratio_of_trace_ids_is_that_of_the_sdk() -> None:
    sampling, judge = sampling_of(sampler("traceidratio", "0.5")), TraceIdRatioBased(0.5)
    for low in (0, 1, 2**63 - 1, 2**63, 2**64 - 1):
        trace_id = (7 << 64) + low
        parent = f"00-{trace_id:032x}-{1:016x}-00"
        expected = judge.should_sample(None, trace_id, "x").decision is Decision.RECORD_AND_SAMPLE
        assert sampling.picks(parent) == expected
