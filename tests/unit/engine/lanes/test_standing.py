"""How many slots an endpoint gets depends on how its attempts went."""

from tests.unit.engine.lanes.lane_bench import DONE, FAILED, LaneBench


def test_an_endpoint_without_a_slot_is_crowded_out_when_its_share_is_used_up() -> None:
    bench = LaneBench(total=8, per_endpoint=8)
    lanes = [bench.lane() for _ in range(5)]
    assert [bench.fill(lane, 1) for lane in lanes] == [1, 1, 1, 1, 0]
    assert lanes[4].is_crowded_out
    lanes[0].answered(bench.claim(), DONE, 0.0, 1.0)
    assert not lanes[4].is_crowded_out


def test_an_answer_proves_the_endpoint_at_once_and_frees_its_share_for_others() -> None:
    bench = LaneBench(total=40, per_endpoint=40)
    first, second = bench.lane(), bench.lane()
    bench.fill(first, 40)
    assert first.in_flight == 10
    first.answered(bench.claim(), DONE, 0.0, 1.0)
    assert first.in_flight == 20, "half of all slots"
    bench.fill(second, 40)
    assert second.in_flight == 10


def test_endpoints_that_hang_leave_slots_to_new_ones_and_these_to_those_that_answer() -> None:
    bench = LaneBench(total=40, per_endpoint=40)
    answering, before = bench.lane(), bench.lane()
    for lane in (answering, before):
        bench.fill(lane, 1)
        lane.answered(bench.claim(), DONE, 0.0, 0.0)
    hanging = [bench.lane() for _ in range(20)]
    assert [bench.fill(lane, 1, 0.1) for lane in hanging] == [1] * 20
    for lane in hanging:
        bench.time_out(lane, 30.0)
        assert lane.standing.name == "HANGS"
    assert sum(bench.fill(lane, 1, 30.0) for lane in hanging) == 10, "a quarter"
    assert sum(bench.fill(bench.lane(), 1, 30.0) for _ in range(40)) == 10, "half with the others"
    bench.fill(answering, 40, 30.0)
    assert answering.in_flight == 10, "half of the others, as for any lane"


def test_silence_under_way_takes_the_good_standing_from_an_endpoint() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, 1)
    lane.answered(bench.claim(), DONE, 0.0, 0.01)
    bench.fill(lane, 2, 1.0)
    for pulse in range(24):
        bench.pauses.pulse(1.0 + pulse / 4)
    lane.notice_hanging(5.9)
    assert lane.standing.name == "ANSWERS"
    lane.notice_hanging(6.0)
    assert lane.standing.name == "HANGS"
    assert bench.slots.used_by == [0, 0, 0, 2]
    lane.answered(bench.claim(), DONE, 0.0, 6.1)
    assert lane.standing.name == "ANSWERS"
    assert bench.slots.used_by == [1, 0, 0, 0]


def test_one_long_failure_among_answers_does_not_count_as_hanging() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, 3)
    lane.answered(bench.claim(), DONE, 0.0, 29.0)
    bench.time_out(lane, 30.0)
    assert lane.standing.name == "ANSWERS"
    bench.time_out(lane, 60.0)
    assert lane.standing.name == "HANGS"


def test_an_endpoint_that_fails_quickly_holds_up_nobody() -> None:
    bench = LaneBench()
    lane = bench.lane()
    bench.fill(lane, 3)
    bench.time_out(lane, 30.0)
    assert lane.standing.name == "HANGS"
    lane.answered(bench.claim(), FAILED, 30.0, 30.0)
    assert lane.standing.name == "UNKNOWN"
