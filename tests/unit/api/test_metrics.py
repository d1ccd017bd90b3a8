"""`GET /metrics`: the format, the key that it takes, and what is counted about requests."""

import gzip

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from duetime.api.metrics.routes import COMPRESSED_BYTES
from tests.unit.api.asgi_client import API_KEY, ApiBench, RawHeaders, Reply, call

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
PROMETHEUS_3_TEXT_FIRST = (
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2"
)
PROMETHEUS_3_PROTOBUF = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
    "q=0.6," + PROMETHEUS_3
)


async def scrape(
    api: ApiBench, key: str | None = API_KEY, method: str = "GET", **headers: str
) -> Reply:
    given: RawHeaders = [
        (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
    ]
    if key is not None:
        given = [*given, (b"authorization", b"Bearer " + key.encode())]
    return await call(api.app, method, "/metrics", headers=given)


async def counts(api: ApiBench) -> dict[tuple[str, str], float]:
    """The requests so far, by operation and status."""
    text = (await scrape(api)).content.decode()
    return {
        (sample.labels["operation"], sample.labels["status"]): sample.value
        for family in parse_text(text)
        if family.name == "duetime_http_requests"
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        ('application/openmetrics-text; version="1.0.0"; charset=utf-8', OPENMETRICS),
        ("application/openmetrics-text;version=0.0.1", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=wrong", TEXT),
        ("application/openmetrics-text;q=nan", TEXT),
        ("application/json", TEXT),
        (";;,=;q=,", TEXT),
        (PROMETHEUS_2, OPENMETRICS),
        (PROMETHEUS_3, OPENMETRICS),
        (PROMETHEUS_3_TEXT_FIRST, TEXT),
        (PROMETHEUS_3_PROTOBUF, OPENMETRICS),
    ],
)
async def test_the_client_chooses_the_format(api: ApiBench, accept: str, expected: str) -> None:
    reply = await scrape(api, accept=accept)
    assert (reply.status, reply.headers["content-type"]) == (200, expected)
    assert reply.headers["cache-control"] == "no-store"
    parse = parse_openmetrics if expected == OPENMETRICS else parse_text
    families = {family.name for family in parse(reply.content.decode())}
    assert "duetime_http_requests" in families


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("identity", False),
        ("br", False),
    ],
)
async def test_a_large_answer_is_compressed_if_the_client_can_read_it(
    api: ApiBench, accepted: str, expected: bool
) -> None:
    reply = await scrape(api, accept_encoding=accepted)
    assert (reply.headers.get("content-encoding") == "gzip") is expected
    text = gzip.decompress(reply.content) if expected else reply.content
    assert len(text) > COMPRESSED_BYTES
    assert b"duetime_http_requests_total" in text


async def test_it_takes_a_key_for_all_namespaces(api: ApiBench) -> None:
    reader = await api.issue_key("read")
    of_a_team = await api.issue_key("admin", namespaces=["default"])
    writer = await api.issue_key("write")
    assert (await scrape(api, reader)).status == 200
    assert (await scrape(api, of_a_team)).status == 403
    assert (await scrape(api, writer)).status == 403
    refused = await scrape(api, None)
    assert refused.status == 401
    assert "www-authenticate" in refused.headers
    assert (await scrape(api, "wrong")).status == 401


async def test_everyone_may_read_public_metrics() -> None:
    api = ApiBench(metrics_public=True)
    await api.open()
    assert (await scrape(api, None)).status == 200
    assert (await scrape(api, "wrong")).status == 200
    assert (await call(api.app, "GET", "/timers")).status == 401


async def test_without_authentication_everyone_may_read() -> None:
    api = ApiBench(api_key=None)
    await api.open()
    assert (await scrape(api, None)).status == 200


async def test_other_methods_are_refused(api: ApiBench) -> None:
    assert (await scrape(api, method="HEAD")).status == 200
    refused = await scrape(api, method="POST")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")


async def test_with_a_port_of_their_own_the_metrics_are_only_there() -> None:
    api = ApiBench(metrics_own_port=True)
    await api.open()
    hint = await scrape(api, None)
    assert hint.status == 404
    assert "METRICS_PORT" in hint.error[2]
    headers = [(b"x-api-key", API_KEY.encode())]
    assert (await call(api.app.metrics, "GET", "/metrics", headers=headers)).status == 200
    assert (await call(api.app.metrics, "GET", "/metrics")).status == 401
    elsewhere = await call(api.app.metrics, "GET", "/timers", headers=headers)
    assert elsewhere.status == 404
    assert "/metrics" in elsewhere.error[2]


async def test_it_answers_before_the_start_and_while_stopping(api: ApiBench) -> None:
    api.app.lifecycle.is_started = False
    assert (await scrape(api)).status == 200
    api.app.lifecycle.is_started = True
    api.app.drain()
    assert (await scrape(api)).status == 200


async def test_requests_are_counted_by_operation_and_status(api: ApiBench) -> None:
    await api.create()
    await api.create(execute_at="yesterday")
    await call(api.app, "POST", "/timers")
    await api.request("GET", "/api/v1/timers/default/unknown")
    await api.request("GET", "/unknown")
    await api.request("PATCH", "/timers")
    api.app.refusal(b"/timers", 431, "the head is too large")
    await api.app.overload(b"/timers", "too many connections")
    await api.app.overload(b"/livez", "too many connections")
    counted = await counts(api)
    assert counted == {
        ("createTimer", "201"): 1,
        ("createTimer", "400"): 1,
        ("createTimer", "401"): 1,
        ("getTimerV1", "404"): 1,
        ("none", "404"): 1,
        ("none", "405"): 1,
        ("none", "431"): 1,
        ("none", "503"): 1,
        ("none", "200"): 1,
    }
    assert (await counts(api))["metrics", "200"] == 1


async def test_refused_keys_are_counted_by_reason(api: ApiBench) -> None:
    reader = await api.issue_key("read", rateLimit={"perSecond": 0.1, "burst": 1})
    await call(api.app, "GET", "/timers")
    await api.request("GET", "/timers", key="wrong")
    await api.request("GET", "/timers", key=reader)
    await api.request("GET", "/timers", key=reader)
    writer = await api.issue_key("write")
    await api.request("GET", "/timers", key=writer)
    text = (await scrape(api)).content.decode()
    for reason, count in (("unauthorized", 2), ("forbidden", 1), ("throttled", 1)):
        assert f'duetime_requests_refused_total{{reason="{reason}"}} {count}\n' in text
