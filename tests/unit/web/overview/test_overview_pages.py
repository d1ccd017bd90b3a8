"""Overview, cluster and bus, as their readers see them."""

import pytest
from msgspec.structs import replace

from duetime.domain.namespace import Namespace
from duetime.ports.endpoints import EndpointPause, EndpointState, EndpointStatus, HeldTimers
from duetime.service.reporting import findings
from duetime.service.reporting.bus_report import BusReport, RejectedCommand
from duetime.testing.virtual_clock import START_AT
from duetime.web.pages.overview import FEW_TIMERS
from tests.unit.web.overview.overview_bench import OverviewBench

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
async def bench() -> OverviewBench:
    bench = OverviewBench()
    await bench.open()
    for name in ("billing", "shipping"):
        await bench.store.add_namespace(Namespace(name, 16))
    await bench.namespaces.refresh()
    return bench


def bus_report(*rejections: RejectedCommand, **changes: object) -> BusReport:
    counts = {
        "received": 10, "scheduled": 6, "canceled": 1, "unchanged": 1, "ignored": 0,
        "rejected": 2, "events_published": 4, "events_failed": 0,
    }  # fmt: skip
    values = {
        "node": "node-1", "broker": "nats://broker:4222", "is_connected": True,
        "is_consuming": True, "lag": 3, **counts, **changes,
    }  # fmt: skip
    return BusReport(**values, rejections=rejections)  # type: ignore[arg-type]


def rejected(tenant: str | None, reason: str = "dueAt: is missing") -> RejectedCommand:
    return RejectedCommand(
        at=START_AT, reason=reason, tenant=tenant, command_id="c-1", size_bytes=120
    )


async def test_a_first_visit_leads_to_the_first_timer(bench: OverviewBench) -> None:
    words = await bench.words("/ui")
    assert "All is well." in words
    assert "No timers yet" in words
    assert "See a timer fire New timer" in words
    assert "0 in the next hour" in words


async def test_a_key_that_only_reads_is_not_led_to_create(bench: OverviewBench) -> None:
    key = await bench.issue_key("read")
    words = await bench.words("/ui", key)
    assert "See a timer fire" not in words
    assert "No timers yet" in words
    await bench.create()
    bench.clock.advance(60)
    words = await bench.words("/ui", key)
    assert "No timers yet" not in words
    assert "New here?" not in words


async def test_few_timers_still_lead_to_the_receiver(bench: OverviewBench) -> None:
    for _ in range(FEW_TIMERS - 1):
        await bench.create()
    words = await bench.words("/ui")
    assert "New here?" in words
    assert "See a timer fire New timer" in words
    await bench.create()
    bench.clock.advance(60)
    assert "See a timer fire" not in await bench.words("/ui")


async def test_timers_are_counted_by_status_with_links(bench: OverviewBench) -> None:
    for _ in range(3):
        await bench.create()
    page = (await bench.page("/ui")).content.decode()
    assert '<a href="/ui/timers?status=pending"><b>3</b>' in page
    words = await bench.words("/ui")
    assert "3 in the next hour" in words
    assert "No timers yet" not in words


async def test_timers_that_were_put_off_are_told_apart_from_those_that_fall_due(
    bench: OverviewBench,
) -> None:
    await bench.create()
    assert "put off" not in await bench.words("/ui")
    (me,) = bench.reports.cluster().members
    held = HeldTimers(endpoint="https://api.example.com", namespace="billing", timers=34)
    bench.facts = replace(me.facts, held=(held,), put_off={"https://paused.example": 1_200})
    assert "1,234 timers that wait for a paused endpoint" in await bench.words("/ui")
    foreign = await bench.issue_key("read", namespaces=["shipping"])
    assert "put off" not in await bench.words("/ui", foreign)


@pytest.mark.parametrize("horizon", ["hour", "day", "week"])
async def test_the_period_can_be_chosen(bench: OverviewBench, horizon: str) -> None:
    await bench.create()
    assert f"1 in the next {horizon}" in await bench.words(f"/ui?due={horizon}")


async def test_an_unknown_period_is_refused_by_name(bench: OverviewBench) -> None:
    reply = await bench.page("/ui?due=year")
    assert reply.status == 400
    assert b"due must be one of hour, day, week" in reply.content.lower()


async def test_problems_come_first_in_words(bench: OverviewBench) -> None:
    held = HeldTimers(
        endpoint="https://api.example.com", namespace="billing", timers=2_310, since=START_AT
    )
    bench.findings = [*findings.behind_breakers([held], [])]
    words = await bench.words("/ui")
    assert "2,310 timers for api.example.com wait behind an open breaker since" in words
    assert "To keep timers from failing while it is mended, pause the endpoint." in words
    assert "runbook" not in words.lower(), "whoever has this page cannot open it"
    assert words.index("2,310 timers") < words.index("Timers by status")
    assert "All is well" not in words
    foreign = await bench.issue_key("read", namespaces=["shipping"])
    assert "All is well." in await bench.words("/ui", foreign)


async def test_a_sentence_about_a_period_names_no_second_time(bench: OverviewBench) -> None:
    bench.findings = [*findings.failing_timers({"billing": 12})]
    words = await bench.words("/ui")
    assert "12 timers failed in the last hour Look at their errors" in words


async def test_a_paused_endpoint_is_resumed_right_there(bench: OverviewBench) -> None:
    api = "https://api.example.com"
    pause = EndpointPause(endpoint=api, paused_at=START_AT, paused_by="ops", reason="it moves")
    status = EndpointStatus(
        endpoint=api,
        state=EndpointState.CLOSED,
        in_flight=0,
        waiting=3,
        consecutive_failures=0,
        last_error=None,
        opened_at=None,
        pause=pause,
    )
    bench.troubled = [status]
    bench.findings = [*findings.of_pauses([status], {}, are_all=True)]
    words = await bench.words("/ui")
    assert "Paused by ops: it moves. Resume Look into it" in words
    assert "paused By ops: it moves Resume" in words
    form = '<form method="post" action="/ui/endpoints/resume"'
    field = f'<input type="hidden" name="endpoint" value="{api}">'
    page = (await bench.page("/ui")).content.decode()
    assert (page.count(form), page.count(field)) == (2, 2)
    page = (await bench.page("/ui", await bench.issue_key("read", "write"))).content.decode()
    assert "Paused by ops: it moves." in page
    assert form not in page


async def test_problems_are_shown_as_text(bench: OverviewBench) -> None:
    held = HeldTimers(endpoint=HOSTILE, namespace=HOSTILE, timers=1)
    bench.findings = [
        *findings.behind_breakers([held], []),
        findings.missed_objective(HOSTILE, HOSTILE, -1),
        findings.lost_member(HOSTILE, START_AT),
    ]
    page = (await bench.page("/ui")).content.decode()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


async def test_a_key_for_some_namespaces_sees_its_own_timers_only(bench: OverviewBench) -> None:
    for number, name in enumerate(("billing", "shipping", "shipping")):
        body = {
            "namespace": name,
            "id": f"t-{number}",
            "executeAt": "2030-01-01T00:00:10Z",
            "callbackUrl": "https://example.com/due",
        }
        assert (await bench.request("POST", "/api/v1/timers", body)).status in (200, 201)
    key = await bench.issue_key("read", namespaces=["billing"])
    words = await bench.words("/ui", key)
    assert "1 in the next hour" in words
    for absent in ("shipping", "Fired per second", "Cluster", "Failing endpoints"):
        assert absent not in words
    assert (await bench.page("/ui?namespace=shipping", key)).status in (400, 404)


async def test_one_namespace_can_be_chosen(bench: OverviewBench) -> None:
    await bench.create()
    words = await bench.words("/ui?namespace=billing")
    assert "0 in the next hour" in words
    assert (await bench.page("/ui?namespace=absent")).status in (400, 404)


@pytest.mark.parametrize("path", ["/ui/cluster", "/ui/bus"])
async def test_pages_of_the_service_are_for_keys_that_see_everything(
    bench: OverviewBench, path: str
) -> None:
    key = await bench.issue_key("admin", namespaces=["billing"])
    assert (await bench.page(path, key)).status == 403
    assert (await bench.page(path, await bench.issue_key("read"))).status == 200


async def test_the_cluster_page_shows_members_and_shards(bench: OverviewBench) -> None:
    words = await bench.words("/ui/cluster")
    assert "16 shards, each with an owner" in words
    assert "node-1" in words
    assert "This store serves one process." in words


async def test_without_a_broker_the_bus_page_says_how_to_get_one(bench: OverviewBench) -> None:
    assert "TIMER_BROKER_URL" in await bench.words("/ui/bus")


async def test_rejected_commands_are_shown_with_their_reasons(bench: OverviewBench) -> None:
    bench.bus = bus_report(rejected("billing"), rejected(None, HOSTILE))
    page = (await bench.page("/ui/bus")).content.decode()
    assert "<img src=x" not in page
    words = await bench.words("/ui/bus")
    assert "3 commands waiting" in words
    assert "dueAt: is missing billing c-1 120 B" in words
    assert "The last 2 of 2 since the start of this process" in words


async def test_what_the_broker_did_not_say_is_not_made_up(bench: OverviewBench) -> None:
    bench.bus = bus_report(lag=None, is_connected=False)
    words = await bench.words("/ui/bus")
    assert "away" in words
    assert "The broker has not said how many commands wait." in words


async def test_the_first_page_is_small(bench: OverviewBench) -> None:
    for _ in range(50):
        await bench.create()
    assert len((await bench.page("/ui?due=week")).content) < 80_000
