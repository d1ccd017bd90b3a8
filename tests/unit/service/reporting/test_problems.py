"""Problems in words: the worst first, with numbers, for those whom they concern."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from duetime.domain.instants import Instant, plus_ms
from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.security.access import EVERYTHING, Access, Role
from duetime.ports.endpoints import EndpointPause, EndpointState, EndpointStatus, HeldTimers
from duetime.ports.leases import ShardState
from duetime.ports.membership import Member, NodeFacts
from duetime.service.reporting import findings
from duetime.service.reporting.bus_report import BusReport
from duetime.service.reporting.cluster_report import ClusterReport, cluster_report
from duetime.service.reporting.failed_lately import FailedLately
from duetime.service.reporting.problems import Finding, Problem, ProblemWatch, Severity
from duetime.testing import LoopClock, on_virtual_time
from duetime.testing.virtual_clock import START_AT

RUNBOOKS = Path(__file__).parents[4] / "docs" / "runbooks"
API = "https://api.example.com"
BILLING = Access(name="b", roles=frozenset({Role.READ}), namespaces=frozenset({"billing"}))
SHIPPING = Access(name="s", roles=frozenset({Role.READ}), namespaces=frozenset({"shipping"}))
NOBODY = Access(name="n", roles=frozenset({Role.READ}), namespaces=frozenset({"other"}))

STATUS = EndpointStatus(
    endpoint=API,
    state=EndpointState.OPEN,
    in_flight=4,
    waiting=0,
    consecutive_failures=30,
    last_error="HTTP 500: secret answer",
    opened_at=START_AT,
)


def held(timers: int, namespace: str = "billing") -> HeldTimers:
    return HeldTimers(endpoint=API, namespace=namespace, timers=timers, since=START_AT)


def cluster(
    *, owners: Iterable[str | None] = ("a",), offset_ms: float | None = None
) -> ClusterReport:
    members = [Member("a", 1, NodeFacts(host="web-1", clock_offset_ms=offset_ms))]
    shards = [ShardState(ShardNumber(shard), Epoch(1), owner) for shard, owner in enumerate(owners)]
    return cluster_report("a", members, shards, is_shared=True)


def bus(*, connected: bool = True, consuming: bool = True, lag: int | None = 0) -> BusReport:
    return BusReport(
        node="a",
        broker="nats://broker",
        is_connected=connected,
        is_consuming=consuming,
        lag=lag,
        received=0,
        scheduled=0,
        canceled=0,
        unchanged=0,
        ignored=0,
        rejected=0,
        events_published=0,
        events_failed=0,
    )


EVERY_FINDING = [
    *findings.behind_breakers([held(2_310)], [STATUS]),
    *findings.behind_breakers([], [STATUS]),
    *findings.overdue_timers({"billing": 7}, are_all=True),
    *findings.failing_timers({"billing": 312}),
    findings.missed_objective("billing", "99 % within 1s over 30d", -0.5),
    *findings.of_store(is_away=True, answer_seconds=None, is_running=True),
    *findings.of_store(is_away=False, answer_seconds=1.4, is_running=False),
    *findings.of_disk(free_bytes=2**27, reserve_bytes=2**28, is_short=True, is_full=False),
    *findings.of_disk(free_bytes=0, reserve_bytes=2**28, is_short=True, is_full=True),
    *findings.of_clocks(cluster(offset_ms=2_300), 500),
    *findings.of_shards(cluster(owners=["a", None, "gone"])),
    findings.silent_member("a", 12.0),
    findings.lost_member("a", START_AT),
    *findings.of_bus(bus(connected=False)),
    *findings.of_bus(bus(consuming=False)),
    *findings.of_bus(bus(lag=24_310)),
    *findings.of_nats("nats.example:4222", is_connected=False),
]


def said(*found: Finding, to: Access = EVERYTHING, after_seconds: float = 0) -> list[Problem]:
    clock = LoopClock()
    watch = ProblemWatch(clock, [lambda: found])
    watch.look()
    return watch.problems(to)


def sentences(*found: Finding, to: Access = EVERYTHING) -> list[str]:
    return [problem.sentence for problem in said(*found, to=to)]


@on_virtual_time
async def test_timers_behind_an_open_breaker() -> None:
    found = list(findings.behind_breakers([held(2_000), held(310, "shipping")], [STATUS]))
    (problem,) = said(*found)
    assert problem.sentence == "2,310 timers for api.example.com wait behind an open breaker"
    assert problem.since == START_AT
    assert problem.href == "/ui/endpoints?find=https%3A%2F%2Fapi.example.com"
    assert "HTTP 500" in problem.detail


@on_virtual_time
async def test_a_paused_endpoint() -> None:
    pause = EndpointPause(endpoint=API, paused_at=START_AT, paused_by="ops", reason="it moves")
    paused = replace(STATUS, pause=pause, waiting=1_200)
    assert not list(findings.behind_breakers([held(7)], [paused]))
    (problem,) = said(*findings.of_pauses([paused], {}, are_all=True))
    assert problem.sentence == "api.example.com is paused, and 1,200 timers wait for it"
    assert problem.advice == "Paused by ops: it moves."
    told = {API: 34, "https://other.example": 5}
    (problem,) = said(*findings.of_pauses([paused, STATUS], told, are_all=False))
    assert problem.sentence == "api.example.com is paused, and at least 1,234 timers wait for it"
    assert problem.severity is Severity.NOTICE


def test_an_open_breaker_is_a_warning_also_if_nothing_waits_behind_it_yet() -> None:
    found = [
        *findings.behind_breakers([held(1)], [STATUS]),
        *findings.behind_breakers([], [STATUS]),
    ]
    assert [each.severity for each in found] == [Severity.WARNING] * 2


@on_virtual_time
async def test_a_key_for_some_namespaces_sees_the_numbers_of_those_only() -> None:
    found = list(findings.behind_breakers([held(2_000), held(1, "shipping")], [STATUS]))
    (problem,) = said(*found, to=SHIPPING)
    assert problem.sentence == "1 timer for api.example.com waits behind an open breaker"
    assert problem.detail == "", "the answer of the endpoint may be to another namespace"
    assert said(*found, to=NOBODY) == []


@pytest.mark.parametrize(
    ("found", "sees"),
    [
        (findings.of_store(is_away=True, answer_seconds=None, is_running=True), True),
        (
            findings.of_disk(free_bytes=0, reserve_bytes=9, is_short=True, is_full=True),
            True,
        ),
        (findings.of_nats("nats:4222", is_connected=False), False),
        (findings.of_clocks(cluster(offset_ms=9_000), 500), False),
        ([findings.missed_objective("billing", "", -1)], True),
        ([findings.missed_objective("shipping", "", -1)], False),
        (findings.overdue_timers({"shipping": 3}, are_all=True), False),
    ],
)
def test_keys_for_some_namespaces_see_only_what_concerns_them(
    found: Iterable[Finding], sees: bool
) -> None:
    shown = list(found)
    watch = ProblemWatch(_Fixed(), [lambda: shown])
    watch.look()
    assert watch.problems(EVERYTHING) != [] or shown[0].after_seconds
    assert bool(watch.problems(BILLING)) is sees


class _Fixed:
    """A clock that stands still."""

    def now(self) -> Instant:
        return plus_ms(START_AT, 1_000)

    def monotonic(self) -> float:
        return 1.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits here")


def test_every_finding_has_a_subject_some_advice_and_a_runbook() -> None:
    for finding in EVERY_FINDING:
        sentence = finding.sentence(5)
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert not sentence.endswith(".")
        assert finding.advice.endswith("."), sentence
        assert (RUNBOOKS / f"{finding.runbook}.md").is_file(), finding.runbook


@on_virtual_time
async def test_the_worst_comes_first_and_then_the_oldest() -> None:
    severities = [problem.severity for problem in said(*EVERY_FINDING)]
    assert severities == sorted(severities)
    assert severities[0] is Severity.CRITICAL


@on_virtual_time
async def test_a_problem_is_shown_since_it_was_first_seen_until_it_is_gone() -> None:
    clock = LoopClock()
    lags = [bus(lag=20_000)]
    watch = ProblemWatch(clock, [lambda: findings.of_bus(lags[0])])
    watch.start()
    began_at = clock.now()
    await clock.sleep(60)
    lags[0] = bus(lag=30_000)
    await clock.sleep(5)
    (problem,) = watch.problems(EVERYTHING)
    assert problem.sentence == "30,000 commands wait at the broker"
    assert problem.since == began_at
    lags[0] = bus()
    await clock.sleep(5)
    assert watch.problems(EVERYTHING) == []
    await watch.abandon()


@on_virtual_time
async def test_shards_that_change_hands_are_no_problem() -> None:
    clock = LoopClock()
    watch = ProblemWatch(clock, [lambda: findings.of_shards(cluster(owners=["a", None]))])
    watch.start()
    await clock.sleep(3)
    assert watch.problems(EVERYTHING) == []
    await clock.sleep(6)
    (problem,) = watch.problems(EVERYTHING)
    assert problem.sentence == "1 of 2 shards have no owner: their timers wait"
    await watch.abandon()


@on_virtual_time
async def test_nothing_is_wrong_with_healthy_parts() -> None:
    assert not list(findings.of_store(is_away=False, answer_seconds=0.01, is_running=True))
    assert not findings.of_disk(free_bytes=9, reserve_bytes=1, is_short=False, is_full=False)
    assert not list(findings.of_bus(bus()))
    assert not list(findings.of_bus(None))
    assert not list(findings.of_clocks(cluster(offset_ms=-400), 500))
    assert not list(findings.of_shards(cluster()))
    assert not list(findings.failing_timers({"billing": 2}))
    assert not list(findings.overdue_timers({"billing": 0}, are_all=True))


@on_virtual_time
async def test_a_count_that_stopped_early_says_so() -> None:
    (found,) = findings.overdue_timers({"billing": 20_000}, are_all=False)
    (sentence,) = sentences(found)
    assert sentence == "More than 20,000 timers should have fired more than a minute ago"


def test_failures_are_counted_since_an_hour_ago_or_since_the_start() -> None:
    lately = FailedLately()
    assert lately.increase({"billing": 9}) == {}
    for minute in range(120):
        lately.see(plus_ms(START_AT, minute * 60_000), {"billing": 100 + minute, "other": 5})
    assert lately.increase({"billing": 219, "other": 2, None: 9}) == {"billing": 60}
