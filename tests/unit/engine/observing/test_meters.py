"""The numbers that the engine shows, against what it did in virtual time."""

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from duetime.delivery.http import HttpDestination
from duetime.domain.instants import plus_ms
from duetime.domain.keys import Epoch
from duetime.domain.lateness.objective import InTimeOrLate, parse_objective
from duetime.domain.namespace import Namespace, NamespaceOptions
from duetime.domain.outcome import Completed
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Claim, TimerStatus
from duetime.domain.transitions import claim_of, claimed
from duetime.engine import Engine
from duetime.engine.meters import GATHERED_ATTEMPTS, EngineMeters
from duetime.reports.metrics import cluster_metrics, engine_metrics
from duetime.service.known_namespaces import KnownNamespaces
from duetime.telemetry.current_work import CURRENT_WORK, CurrentWork
from duetime.telemetry.metrics.catalogue import timers
from duetime.telemetry.metrics.exposition import Format
from duetime.telemetry.metrics.metric import Metric
from duetime.telemetry.metrics.recording import Histogram, LabelValues
from duetime.telemetry.metrics.registry import Registry
from duetime.testing import Fail, Hang, RunOut, Succeed, make_timer, on_virtual_time
from tests.unit.engine.engine_bench import GOOD, HANGING, SLOW, EngineBench

ONCE = RetryPolicy(max_retries=0)
HANDED_BACK = "duetime_claims_handed_back_total"


class MeteredBench(EngineBench):
    def __init__(self, meters: EngineMeters | None = None, **options: Any) -> None:
        self.meters = meters or EngineMeters()
        super().__init__(**options)
        self.registry = Registry()
        http = cast(HttpDestination, SimpleNamespace(refused=0))
        self.registry.add(engine_metrics(self.engine, http))
        self.registry.add(cluster_metrics(self.engine))

    def new_engine(self) -> Engine:
        return Engine(
            self.store,
            self.store,
            self.destination,
            self.clock,
            self.options,
            namespaces=self.namespaces,
            meters=self.meters,
        )

    def shown(self) -> dict[tuple[str, ...], float]:
        """Each sample by its name and the values of its labels."""
        text = self.registry.render(Format.PROMETHEUS)
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


@on_virtual_time
async def test_attempts_count_by_namespace_type_and_outcome() -> None:
    bench = MeteredBench()
    bench.destination.script("bad", Fail(), Fail(), Succeed())
    bench.destination.script("worse", Fail())
    await bench.start()
    for timer_id, policy in (("good", None), ("bad", RetryPolicy()), ("worse", ONCE)):
        await bench.create(timer_id, 1, retry_policy=policy)
    await bench.clock.sleep(600)

    shown = bench.shown()

    assert shown["duetime_attempts_total", "default", "http", "completed"] == 2
    assert shown["duetime_attempts_total", "default", "http", "failed"] == 3
    assert shown["duetime_timers_finished_total", "default", "http", "completed"] == 2
    assert shown["duetime_timers_finished_total", "default", "http", "failed"] == 1
    assert shown["timer_schedules_processed_total",] == 5


@on_virtual_time
async def test_lateness_and_duration_are_those_of_the_attempt() -> None:
    bench = MeteredBench(concurrency=1)
    bench.destination.script(SLOW, Succeed(3))
    await bench.start()
    await bench.create("first", 1, url=SLOW)
    await bench.create("second", 1, url=SLOW)
    await bench.clock.sleep(30)

    shown = bench.shown()

    lateness = ("duetime_lateness_seconds_bucket", "default", "http")
    assert (shown[*lateness, "0.0005"], shown[*lateness, "2.0"]) == (1, 1)
    assert shown[*lateness, "5.0"] == 2
    duration = ("duetime_attempt_duration_seconds_bucket", "default", "http")
    assert (shown[*duration, "2.5"], shown[*duration, "5.0"]) == (0, 2)
    assert shown["duetime_attempt_duration_seconds_sum", "default", "http"] == 6


@on_virtual_time
async def test_an_attempt_that_could_not_be_made_is_a_shortage_and_no_attempt() -> None:
    bench = MeteredBench()
    bench.destination.script("t", RunOut(), Succeed())
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(30)

    shown = bench.shown()

    assert shown["duetime_local_shortages_total",] == 1
    assert shown["duetime_claims_handed_back_total", "shortage"] == 1
    assert shown["duetime_attempts_total", "default", "http", "completed"] == 1
    assert shown["duetime_lateness_seconds_count", "default", "http"] == 1


@on_virtual_time
async def test_slots_lanes_and_breakers_show_what_is_under_way() -> None:
    bench = MeteredBench(concurrency=8, concurrency_per_endpoint=1)
    bench.destination.script(HANGING, Hang())
    await bench.start()
    await bench.create_many("hanging", [bench.at(1)] * 3, HANGING)
    await bench.clock.sleep(1.1)

    shown = bench.shown()

    assert shown["duetime_engine_running",] == 1
    assert (shown["duetime_slots",], shown["duetime_slots_in_use",]) == (8, 1)
    assert shown["duetime_claims_waiting",] == 2
    assert shown["duetime_lanes", "waiting"] == 1
    assert shown["duetime_lanes", "flowing"] == shown["duetime_lanes", "held"] == 0
    assert shown["duetime_breakers", "closed"] == 1

    bench.destination.script(GOOD, Fail())
    await bench.create_many("failing", [bench.at(1 + n / 10) for n in range(100)], GOOD)
    await bench.clock.sleep(9)

    shown = bench.shown()
    assert shown["duetime_breakers", "open"] + shown["duetime_breakers", "half_open"] == 1
    assert sum(n for (name, *_), n in shown.items() if name == HANDED_BACK) > 0


@on_virtual_time
async def test_reads_of_the_store_show_until_it_is_away() -> None:
    bench = MeteredBench()
    await bench.start()
    await bench.clock.sleep(20)
    bench.store.away = True
    await bench.clock.sleep(40)

    shown = bench.shown()

    age = bench.clock.now() / 1_000_000 - shown["duetime_due_read_timestamp_seconds",]
    assert 39 < age < 46
    assert shown["timer_polling_duration_seconds_count",] >= 4
    assert shown["duetime_engine_running",] == 0


@on_virtual_time
async def test_outcomes_that_the_store_has_not_written_are_shown() -> None:
    bench = MeteredBench()
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(0.995)
    bench.store.away = True
    await bench.clock.sleep(1)
    assert bench.shown()["duetime_outcomes_unwritten",] == 1
    bench.store.away = False
    await bench.clock.sleep(5)
    assert bench.shown()["duetime_outcomes_unwritten",] == 0


@on_virtual_time
async def test_shards_and_their_owners() -> None:
    bench = MeteredBench()
    await bench.start()

    shown = bench.shown()

    assert shown["duetime_shards",] == shown["duetime_shards_owned",] > 1
    assert shown["duetime_cluster_members",] == 1
    assert shown["duetime_shard_epoch_max",] == 1
    assert shown["duetime_shard_handovers_total", "taken"] == shown["duetime_shards",]
    await bench.engine.stop(1)
    assert bench.shown()["duetime_shard_handovers_total", "released"] == shown["duetime_shards",]
    assert bench.shown()["duetime_shards_owned",] == 0


@on_virtual_time
async def test_namespaces_beyond_the_limit_share_one_label() -> None:
    bench = MeteredBench(EngineMeters(LabelValues(2)))
    await bench.start()
    for name in ("a", "b", "c", "d"):
        await bench.store.add_namespace(Namespace(name))
        await bench.create_many(name, [bench.at(1)] * 2, namespace=name)
    await bench.clock.sleep(10)

    shown = bench.shown()

    counts = {
        labels[1]: value
        for labels, value in shown.items()
        if labels[0] == "duetime_attempts_total" and labels[3] == "completed"
    }
    assert sum(counts.values()) == 8
    assert len(counts) == 3
    assert counts["other"] == 4


@on_virtual_time
async def test_endpoints_are_shown_on_request_only_and_up_to_a_number() -> None:
    for endpoints, expected in ((0, {}), (1, {GOOD: 1, "other": 1})):
        bench = MeteredBench(EngineMeters(endpoints=endpoints))
        await bench.start()
        await bench.create("t", 1)
        await bench.create("u", 2, url=SLOW)
        await bench.clock.sleep(5)

        shown = bench.shown()

        assert {
            labels[1]: value
            for labels, value in shown.items()
            if labels[0] == "duetime_endpoint_attempts_total"
        } == expected
        await bench.engine.stop(1)


@on_virtual_time
async def test_a_sampled_attempt_is_an_example_of_its_lateness() -> None:
    bench = MeteredBench()
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    await bench.start()
    await bench.create("unsampled", 1)
    await bench.clock.sleep(2)
    CURRENT_WORK.set(CurrentWork(None, f"00-{trace_id}-b7ad6b7169203331-01", is_attempt=True))
    claim = bench.destination.attempts[0].claim
    sent_at = bench.clock.now()
    bench.meters.attempt_made(
        claim,
        GOOD,
        Completed(sent_at=sent_at, answered_at=sent_at),
        3_000,
        TimerStatus.COMPLETED,
    )

    text = bench.registry.render(Format.OPENMETRICS)

    line, duration = [line for line in text.splitlines() if "trace_id" in line]
    assert line.startswith('duetime_lateness_seconds_bucket{namespace="default"')
    assert duration.startswith("duetime_attempt_duration_seconds_bucket")
    assert f'le="0.005"}} 2 # {{trace_id="{trace_id}"}} 0.003' in line


@on_virtual_time
async def test_a_retry_that_was_handed_back_is_late_against_its_plan() -> None:
    """However often its claim is handed back because the endpoint's breaker is open."""
    bench = MeteredBench()
    bench.destination.script(HANGING, Hang())
    await bench.start()
    policy = RetryPolicy(initial_interval_ms=1_000, backoff_multiplier=1.0, max_retries=100)
    await bench.create_many("t", [bench.at(1)] * 600, HANGING, retry_policy=policy)
    await bench.clock.sleep(100)
    bench.destination.script(HANGING, Succeed())
    await bench.clock.sleep(200)

    shown = bench.shown()

    recorded = [attempt for id in range(600) for attempt in (await bench.timer(f"t-{id}")).attempts]
    waited = [sum(wait.microseconds for wait in attempt.waits) for attempt in recorded]
    over_a_minute = sum(each > 60_000_000 for each in waited)
    count = shown["duetime_lateness_seconds_count", "default", "http"]
    up_to_a_minute = shown["duetime_lateness_seconds_bucket", "default", "http", "60.0"]
    assert over_a_minute > 100
    assert count - up_to_a_minute >= over_a_minute


@on_virtual_time
async def test_outcomes_that_the_store_cannot_write_are_shown() -> None:
    bench = MeteredBench()
    await bench.start()
    bench.store.refuses = ValueError("no such status")
    await bench.create("t", 1)
    await bench.clock.sleep(5)
    assert bench.shown()["duetime_outcomes_unwritten",] == 1


@on_virtual_time
async def test_a_clock_that_is_set_back_makes_no_sum_shrink() -> None:
    bench = MeteredBench()
    await bench.start()
    await bench.create("t", 1)
    await bench.clock.sleep(2)
    claim, sent_at = bench.destination.attempts[0].claim, bench.clock.now()
    earlier = Completed(sent_at=sent_at, answered_at=plus_ms(sent_at, -3_600_000))
    bench.meters.attempt_made(claim, GOOD, earlier, 0, TimerStatus.COMPLETED)
    assert bench.shown()["duetime_attempt_duration_seconds_sum", "default", "http"] >= 0


def test_attempts_are_recorded_a_few_at_a_time_even_if_nobody_reads_them() -> None:
    meters, attempts = EngineMeters(), 10 * GATHERED_ATTEMPTS
    claim, outcome = _an_attempt()
    held_by_others = sys.getrefcount(outcome)
    for _ in range(attempts):
        meters.attempt_made(claim, GOOD, outcome, 0, TimerStatus.COMPLETED)
        assert sys.getrefcount(outcome) - held_by_others < GATHERED_ATTEMPTS
    assert meters.attempts() == attempts


@pytest.mark.parametrize("metric", [timers.LATENESS, timers.ATTEMPT_DURATION])
def test_a_histogram_that_is_read_alone_has_every_attempt(metric: Metric) -> None:
    meters, claim, outcome = EngineMeters(), *_an_attempt()
    meters.attempt_made(claim, GOOD, outcome, 0, TimerStatus.COMPLETED)
    histogram = next(each for each in meters.recorders() if each.metric is metric)
    assert isinstance(histogram, Histogram)
    assert [sum(series.counts) for _, series in histogram.series()] == [1]


@pytest.mark.parametrize("deleting", [False, True])
def test_attempts_count_for_the_objective_as_soon_as_there_is_one(deleting: bool) -> None:
    known, (claim, outcome) = KnownNamespaces(), _an_attempt()
    meters = EngineMeters(view=known)
    objective = parse_objective("99 % within 100ms over 1h")
    for slo, counted in ((None, {}), (objective, {claim.namespace: InTimeOrLate(1, 0)})):
        known.add(Namespace(claim.namespace, options=NamespaceOptions(slo=slo, deleting=deleting)))
        meters.attempt_made(claim, GOOD, outcome, 0, TimerStatus.COMPLETED)
        assert meters.objectives.since_start == counted
    for seen in ([*known], []):
        known.replace_all(seen)
        meters.attempt_made(claim, GOOD, outcome, 0, TimerStatus.COMPLETED)
        assert meters.objectives.since_start == {claim.namespace: InTimeOrLate(2, 0)}


def _an_attempt() -> tuple[Claim, Completed]:
    timer = make_timer()
    claim = claim_of(claimed(timer, epoch=Epoch(1), now=timer.execute_at))
    return claim, Completed(sent_at=timer.execute_at, answered_at=timer.execute_at)
