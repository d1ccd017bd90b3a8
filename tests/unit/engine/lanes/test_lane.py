"""One lane and the slots it shares, without an engine around them."""

from collections import Counter
from itertools import pairwise

from msgspec.structs import replace

from duetime.domain.keys import TimerKey
from duetime.engine.lanes.lane import FIRST_WINDOW, MOST_MORE_AT_ONCE
from duetime.engine.lanes.slots import MAX_WAITING, MAX_WAITING_BYTES, size_of
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer, SealingKey
from tests.unit.engine.lanes.lane_bench import DONE, LaneBench, look_until


def test_claims_start_in_order_as_far_as_the_first_window_goes() -> None:
    bench = LaneBench()
    lane = bench.lane()
    assert bench.fill(lane, FIRST_WINDOW + 3) == FIRST_WINDOW + 3
    assert bench.started == [f"timer-{number + 1}" for number in range(FIRST_WINDOW)]
    assert lane.waiting == bench.slots.waiting == 3


def test_an_answer_lets_the_next_claim_start() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, FIRST_WINDOW + 2)
    lane.answered(bench.claim(), DONE, 0.0, 0.01)
    assert bench.started[-1] == f"timer-{FIRST_WINDOW + 1}"
    assert (lane.in_flight, bench.slots.used, bench.slots.waiting) == (64, 64, 1)


def test_a_lane_without_answers_doubles_its_window_up_to_the_endpoints_limit() -> None:
    bench = LaneBench(per_endpoint=200)
    lane = bench.lane()
    bench.fill(lane, 500)
    in_flight = []
    for step in range(1, 5):
        lane.look_after(step * 0.025)
        in_flight.append(lane.in_flight)
    assert in_flight == [128, 200, 200, 200]


def test_a_lane_opens_a_bounded_number_of_connections_at_once() -> None:
    bench = LaneBench(per_endpoint=2_000)
    lane = bench.lane()
    bench.fill(lane, 2_000)
    in_flight = [lane.in_flight]
    for step in range(1, 6):
        lane.look_after(step * 0.025)
        in_flight.append(lane.in_flight)
    more = [after - before for before, after in pairwise(in_flight)]
    assert more == [64, 128, MOST_MORE_AT_ONCE, MOST_MORE_AT_ONCE, MOST_MORE_AT_ONCE]


def test_a_lane_that_answers_quickly_keeps_its_window() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, 200)
    lane.answered(bench.claim(), DONE, 0.0, 0.02)
    assert lane.look_after(0.025) == []
    assert lane.in_flight == FIRST_WINDOW


def test_a_silent_lane_stops_counting_and_gives_up_after_a_quarter_of_a_second() -> None:
    bench = LaneBench(per_endpoint=64)
    lane = bench.lane()
    bench.fill(lane, 100)
    assert look_until(lane, 0.225) == []
    assert bench.slots.waiting == 0
    assert len(look_until(lane, 0.025, since=0.225)) == 36
    assert not lane.waiting
    assert not lane.accept(bench.claim(), 0.3)


def test_a_lane_that_had_been_silent_for_long_may_still_grow_before_it_gives_up() -> None:
    bench = LaneBench()
    lane = bench.lane(now_seconds=0.0)
    bench.fill(lane, 500, now_seconds=10.0)
    assert lane.look_after(10.025) == []
    assert lane.look_after(10.05) == []
    assert lane.in_flight == 256


def test_a_lane_that_gave_up_takes_claims_again_after_an_answer() -> None:
    bench = LaneBench(per_endpoint=64)
    lane = bench.lane()
    bench.fill(lane, 65)
    look_until(lane, 0.25)
    lane.answered(bench.claim(), DONE, 0.0, 0.3)
    assert bench.fill(lane, 2, now_seconds=0.3) == 2
    assert (lane.in_flight, lane.waiting) == (64, 1)


def test_a_lane_holds_a_bounded_number_of_claims() -> None:
    bench = LaneBench()
    assert bench.fill(bench.lane(), 5_000) == FIRST_WINDOW + MAX_WAITING


def test_a_lane_that_answers_too_slowly_stops_counting_until_it_has_caught_up() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, FIRST_WINDOW + 100)
    for step in range(1, 30):
        lane.answered(bench.claim(), DONE, 0.0, step * 0.01)
        if step % 2 == 0:
            lane.look_after(step * 0.01)
    assert lane.waiting == 71
    assert bench.slots.waiting == 0
    for _ in range(71):
        lane.answered(bench.claim(), DONE, 0.0, 0.3)
    bench.fill(lane, 5, now_seconds=0.3)
    assert bench.slots.waiting == 5


def test_deferrals_grow_while_nothing_moves_and_start_over_when_the_lane_is_free() -> None:
    bench = LaneBench(per_endpoint=1)
    lane = bench.lane()
    bench.fill(lane, 1)
    deferrals, now_seconds = [], 1.0
    for _ in range(7):
        deferrals.append(lane.next_deferral_ms("default", now_seconds))
        assert lane.next_deferral_ms("default", now_seconds + 0.1) == deferrals[-1]
        now_seconds += deferrals[-1] / 1_000
    assert deferrals == [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]
    lane.answered(bench.claim(), DONE, 0.0, now_seconds)
    assert lane.next_deferral_ms("default", now_seconds) == 250


def test_a_new_silent_endpoint_takes_at_most_half_of_its_share_and_two_a_third_each() -> None:
    bench = LaneBench(total=240, per_endpoint=240)
    first = bench.lane()
    bench.fill(first, 200)
    look_until(first, 0.5)
    assert first.in_flight == 60
    second = bench.lane()
    bench.fill(second, 200)
    look_until(second, 0.5)
    assert second.in_flight == 30
    third = bench.lane()
    assert bench.fill(third, 1) == 1
    assert third.in_flight == 1


def test_slots_that_other_lanes_gave_back_are_used_within_one_look() -> None:
    bench = LaneBench(total=8, per_endpoint=8)
    busy, blocked = [bench.lane() for _ in range(2)], bench.lane()
    bench.fill(blocked, 1)
    for lane in busy:
        bench.fill(lane, 4)
    assert bench.slots.used == 4
    bench.fill(blocked, 1)
    assert blocked.in_flight == 1
    for lane in busy:
        lane.take_waiting()
        lane.answered(bench.claim(), DONE, 0.0, 0.02)
    blocked.look_after(0.024)
    assert blocked.in_flight == 2


def test_large_claims_are_bounded_by_their_bytes() -> None:
    bench = LaneBench()
    claims = [bench.claim(payload_bytes=2**20) for _ in range(100)]
    first, second = bench.lane(), bench.lane()
    accepted = [claim for claim in claims if first.accept(claim, 0.0)]
    assert first.in_flight == 32, "half of what may be in flight in all"
    assert first.waiting == 8
    assert len(accepted) == 40
    assert sum(second.accept(claim, 0.0) for claim in claims) == 16 + 8
    for claim in accepted[:32]:
        first.answered(claim, DONE, 0.0, 0.01)
    assert (first.in_flight, first.waiting) == (8, 0)


def test_a_claim_of_any_size_is_sent_in_the_end() -> None:
    bench = LaneBench()
    lane, other = bench.lane(), bench.lane()
    huge = bench.claim(payload_bytes=80 * 2**20)
    assert lane.accept(huge, 0.0)
    assert lane.in_flight == 1
    assert other.accept(bench.claim(payload_bytes=2**20), 0.0)
    assert other.in_flight == 1
    lane.answered(huge, DONE, 0.0, 0.01)
    assert bench.slots.used_bytes == 2**20


def test_the_namespaces_that_wait_for_an_endpoint_have_their_turns() -> None:
    bench = LaneBench(per_endpoint=1)
    lane = bench.lane()
    sent = [bench.claim(namespace=name) for name in ("large",) * 5 + ("small",) * 2]
    assert all(lane.accept(claim, 0.0) for claim in sent)
    for step in range(1, 7):
        last = next(claim for claim in sent if claim.id == bench.started[-1])
        lane.answered(last, DONE, 0.0, step)
    assert bench.started == [f"timer-{number}" for number in (1, 2, 6, 3, 7, 4, 5)]
    assert (lane.in_flight, lane.waiting, bench.slots.waiting) == (1, 0, 0)


def test_a_namespace_that_waits_in_numbers_leaves_room_for_others() -> None:
    bench = LaneBench()
    lane = bench.lane()
    assert bench.fill(lane, 5_000) == FIRST_WINDOW + MAX_WAITING
    assert lane.accept(bench.claim(namespace="other"), 0.0)


def test_many_namespaces_together_wait_in_bounded_numbers_and_each_has_a_few() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, FIRST_WINDOW)
    accepted: Counter[str] = Counter()
    for number in range(50_000):
        namespace = f"tenant-{number % 250}"
        accepted[namespace] += lane.accept(bench.claim(namespace=namespace), 0.0)
    assert MAX_WAITING <= lane.waiting <= 2 * MAX_WAITING
    assert min(accepted[f"tenant-{number}"] for number in range(250)) >= 8


def test_many_namespaces_together_keep_a_bounded_number_of_bytes_waiting() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, FIRST_WINDOW)
    for number in range(2_000):
        lane.accept(bench.claim(payload_bytes=100_000, namespace=f"tenant-{number % 500}"), 0.0)
    waiting = list(lane.waiting_claims())
    assert len({claim.namespace for claim in waiting}) >= 80
    assert sum(map(size_of, waiting)) <= 2 * MAX_WAITING_BYTES
    for claim in lane.take_waiting():
        assert lane.accept(claim, 0.0)


def test_claims_with_sealed_contents_wait_in_the_same_bounds() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, FIRST_WINDOW)
    sealer = CallbackSealer(Sealer([SealingKey("k", bytes(32))]))
    for _ in range(200):
        claim = bench.claim(payload_bytes=100_000)
        sealed = sealer.sealed(TimerKey(claim.namespace, claim.id), claim.callback)
        lane.accept(replace(claim, callback=sealed), 0.0)
    kept = [claim.callback.sealed or "" for claim in lane.waiting_claims()]
    assert len(kept) >= 20
    assert sum(map(len, kept)) <= MAX_WAITING_BYTES


def test_a_large_number_that_is_handed_back_returns_over_time_within_a_minute() -> None:
    bench = LaneBench(per_endpoint=1)
    lane = bench.lane()
    bench.fill(lane, 1)
    returns: Counter[int] = Counter()
    for number in range(80_000):
        now_seconds = number / 5_000
        deferral_seconds = lane.next_deferral_ms("default", now_seconds) / 1_000
        assert 0.25 <= deferral_seconds <= 60
        returns[int(now_seconds + deferral_seconds)] += 1
    assert max(returns[second] for second in range(60)) <= 1_001


def test_the_large_number_of_one_namespace_does_not_keep_anothers_claims_away() -> None:
    bench = LaneBench(per_endpoint=1)
    lane = bench.lane()
    bench.fill(lane, 1)
    for _ in range(10_000):
        lane.next_deferral_ms("large", 0.0)
    assert lane.next_deferral_ms("small", 0.0) == 250


def test_the_namespaces_of_a_silent_endpoint_share_the_rate_of_returns() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, 2_000)
    look_until(lane, 1)
    assert lane.in_flight == 1_024
    returns: Counter[int] = Counter()
    for number in range(50_000):
        now_seconds = 10 + number / 5_000
        deferral_ms = lane.next_deferral_ms(f"tenant-{number % 100}", now_seconds)
        returns[int(now_seconds + deferral_ms / 1_000)] += 1
    assert max(returns[second] for second in range(15, 60)) <= 1_300
