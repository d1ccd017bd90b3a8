"""The page of endpoints: states in words, pauses, and who may see and do what."""

from html import escape

import pytest
from msgspec.structs import replace

from duetime.ports.endpoints import (
    EndpointFigures,
    EndpointPause,
    EndpointState,
    EndpointStatus,
    idle_endpoint,
)
from duetime.ports.membership import NodeFacts
from duetime.ports.security import AuditQuery
from duetime.service.reporting.cluster_report import MemberReport
from duetime.web.pages.endpoints import SHOWN_ENDPOINTS
from tests.unit.web.endpoints.endpoints_bench import ENDPOINTS, EndpointsBench
from tests.unit.web.page_bench import text_of

PAUSE = f"{ENDPOINTS}/pause"
RESUME = f"{ENDPOINTS}/resume"
ORIGIN = "https://api.example.com:443"


def failing(bench: EndpointsBench, endpoint: str = ORIGIN, **more: object) -> EndpointStatus:
    status = replace(
        idle_endpoint(endpoint),
        consecutive_failures=24,
        last_error="HTTP 503: busy",
        failing_since=bench.clock.now(),
    )
    return replace(status, **more)


async def test_an_empty_page_says_so(bench: EndpointsBench) -> None:
    page = await bench.page(ENDPOINTS)
    assert page.status == 200
    assert "No endpoint was called in the last 15 minutes." in text_of(page)


async def test_states_are_told_in_words_and_the_troubled_come_first(
    bench: EndpointsBench,
) -> None:
    now = bench.clock.now()
    is_open = failing(
        bench, "http://open:80", state=EndpointState.OPEN, opened_at=now, in_flight=4, waiting=7
    )
    bench.reporter.statuses += [idle_endpoint("http://calm:80"), failing(bench), is_open]
    bench.reporter.figures["http://calm:80"] = EndpointFigures(
        attempts=2_000, failures=50, p50_ms=0.42, p99_ms=1_310.0
    )
    bench.reporter.pauses = {
        "http://paused:80": EndpointPause(
            endpoint="http://paused:80", paused_at=now, paused_by="operations", reason="a deploy"
        )
    }
    text = text_of(await bench.page(ENDPOINTS))
    parts = [
        "http://paused:80 Timers of http://paused:80 Failed timers of http://paused:80 paused since"
        " 2030-01-01 00:00:00 UTC by operations a deploy",
        "http://open:80",
        "breaker open since 2030-01-01 00:00:00 UTC 24 failures in a row. At most 4 attempts at a"
        " time go there. Last error: HTTP 503: busy 4 7",
        ORIGIN,
        "failing since 2030-01-01 00:00:00 UTC 24 failures in a row. Last error: HTTP 503: busy",
        "http://calm:80",
        "working 0 0 2,000 2.5 % 0.4 ms 1.3 s",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places, text
    assert places == sorted(places)


async def test_an_endpoint_leads_to_its_timers(bench: EndpointsBench) -> None:
    bench.reporter.statuses += [failing(bench), failing(bench, "nats://127.0.0.1:4222 a")]
    content = (await bench.page(ENDPOINTS)).content.decode()
    query = "endpoint=https%3A%2F%2Fapi.example.com%3A443"
    assert f'href="/ui/timers?{query}"' in content
    assert f'href="/ui/timers?status=failed&amp;{query}"' in content
    assert "endpoint=nats" not in content, "timers are not found by a subject"


async def test_an_endpoint_is_paused_and_resumed(bench: EndpointsBench) -> None:
    paused = await bench.send(PAUSE, [("endpoint", "api.example.com"), ("reason", "a deploy")])
    assert (paused.status, paused.headers["location"]) == (303, ENDPOINTS)
    assert list(bench.reporter.pauses) == [ORIGIN]
    text = text_of(await bench.page(ENDPOINTS))
    assert "1 paused" in text
    assert "by API_KEY a deploy" in text
    resumed = await bench.send(RESUME, [("endpoint", ORIGIN)])
    assert (resumed.status, resumed.headers["location"]) == (303, ENDPOINTS)
    assert not bench.reporter.pauses
    entries = await bench.store.security.audit_entries(AuditQuery())
    assert [(each.action, each.target, each.result) for each in reversed(entries)] == [
        ("endpoint.pause", ORIGIN, "ok"),
        ("endpoint.resume", ORIGIN, "ok"),
    ]


async def test_a_wrong_endpoint_is_told_beside_its_field(bench: EndpointsBench) -> None:
    reply = await bench.send(PAUSE, [("endpoint", "https://a.example/path"), ("reason", "why")])
    assert reply.status == 400
    content = reply.content.decode()
    assert "Must be an origin such as https://api.example.com" in content
    assert 'value="https://a.example/path"' in content
    assert 'value="why"' in content
    assert '<dialog id="pause" aria-labelledby="pause-title" open>' in content
    assert not bench.reporter.pauses
    (entry,) = await bench.store.security.audit_entries(AuditQuery())
    assert (entry.action, entry.result) == ("endpoint.pause", "INVALID_INPUT")


async def test_a_resume_that_comes_too_late_is_told_on_the_page(bench: EndpointsBench) -> None:
    reply = await bench.send(RESUME, [("endpoint", ORIGIN)])
    assert reply.status == 404
    assert f"{ORIGIN} is not paused." in text_of(reply)


async def test_a_link_opens_the_dialog_without_a_script(bench: EndpointsBench) -> None:
    content = (await bench.page(f"{ENDPOINTS}?pause={ORIGIN}")).content.decode()
    assert '<dialog id="pause" aria-labelledby="pause-title" open>' in content
    assert f'name="endpoint" value="{ORIGIN}"' in content


async def test_hostile_text_is_shown_as_text(bench: EndpointsBench) -> None:
    hostile = "</td><script>alert(1)</script>\"'"
    bench.reporter.statuses.append(failing(bench, last_error=hostile))
    await bench.send(PAUSE, [("endpoint", "bus <b>x</b>"), ("reason", hostile)])
    content = (await bench.page(f"{ENDPOINTS}?find=&pause={ORIGIN}")).content.decode()
    assert "<script>alert" not in content
    assert "<b>x</b>" not in content
    assert content.count(escape(hostile, quote=False).partition('"')[0]) == 2


async def test_endpoints_are_found_by_a_part_of_their_name(bench: EndpointsBench) -> None:
    bench.reporter.statuses += [failing(bench), failing(bench, "http://other:80")]
    text = text_of(await bench.page(f"{ENDPOINTS}?find=API.example"))
    assert ORIGIN in text
    assert "http://other:80" not in text
    assert "No endpoint contains “nowhere”." in text_of(
        await bench.page(f"{ENDPOINTS}?find=nowhere")
    )


async def test_many_endpoints_are_cut_and_the_rest_is_counted(bench: EndpointsBench) -> None:
    bench.reporter.statuses += [
        idle_endpoint(f"http://host-{number:04}:80") for number in range(SHOWN_ENDPOINTS + 30)
    ]
    bench.reporter.statuses.append(failing(bench, "http://z:80"))
    text = text_of(await bench.page(ENDPOINTS))
    assert "http://z:80" in text
    assert "And 31 more." in text
    assert "231 endpoints." in text


async def test_a_node_of_several_says_that_the_figures_are_its_own(bench: EndpointsBench) -> None:
    bench.reporter.statuses.append(failing(bench))
    assert "one of" not in text_of(await bench.page(ENDPOINTS))
    bench.members = [
        MemberReport(
            node=f"node-{n}",
            facts=NodeFacts(put_off={"http://paused:80": 600}),
            shards=8,
            is_answering=n == 1,
        )
        for n in (1, 2, 3)
    ]
    text = text_of(await bench.page(ENDPOINTS))
    assert "of node-1 alone: it is one of 3 nodes" in text
    assert "Pauses hold on all of them." in text
    bench.reporter.pauses = {
        "http://paused:80": EndpointPause(
            endpoint="http://paused:80", paused_at=bench.clock.now(), paused_by="operations"
        )
    }
    assert "by operations 0 1,200" in text_of(await bench.page(ENDPOINTS)), "those of two others"


@pytest.mark.parametrize("role", ["read", "write"])
async def test_a_key_that_may_not_pause_sees_no_buttons(bench: EndpointsBench, role: str) -> None:
    bench.reporter.statuses.append(failing(bench))
    key = await bench.issue_key(*{role, "read"})
    page = await bench.page(ENDPOINTS, key)
    assert page.status == 200
    assert ORIGIN in text_of(page)
    for word in ("Pause", "Resume", "data-pause", "endpoints.js"):
        assert word not in page.content.decode()
    refused = await bench.send(PAUSE, [("endpoint", ORIGIN)], key)
    assert refused.status == 403
    assert not bench.reporter.pauses


async def test_a_key_for_some_namespaces_sees_a_sentence_and_no_entry(
    bench: EndpointsBench,
) -> None:
    bench.reporter.statuses.append(failing(bench))
    key = await bench.issue_key("admin", namespaces=["mine"])
    page = await bench.page(ENDPOINTS, key)
    assert page.status == 403
    assert "This key is for some namespaces only" in text_of(page)
    assert 'href="/ui/endpoints"' not in page.content.decode()
    assert ORIGIN not in page.content.decode()
    assert (await bench.send(PAUSE, [("endpoint", ORIGIN)], key)).status == 403
