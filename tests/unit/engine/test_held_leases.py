"""Which claims a process may act on, and until when."""

from duetime.domain.keys import Epoch, ShardNumber
from duetime.domain.timer import Claim
from duetime.domain.transitions import claim_of, claimed
from duetime.engine.held_leases import HeldLeases
from duetime.testing import VirtualClock, make_timer
from duetime.testing.virtual_clock import START_AT

ONE, TWO, THREE = ShardNumber(1), ShardNumber(2), ShardNumber(3)


def claim_under(shard: ShardNumber, epoch: int) -> Claim:
    timer_id = next(f"t{n}" for n in range(1_000) if make_timer(f"t{n}").shard == shard)
    return claim_of(claimed(make_timer(timer_id), epoch=Epoch(epoch), now=START_AT))


def leases_of(**epochs: int) -> dict[ShardNumber, Epoch]:
    numbers = {"one": ONE, "two": TWO, "three": THREE}
    return {numbers[name]: Epoch(epoch) for name, epoch in epochs.items()}


def test_a_claim_may_be_acted_on_under_exactly_its_lease() -> None:
    held = HeldLeases(VirtualClock())
    held.take(leases_of(one=3, two=1))
    assert held.holds(claim_under(ONE, 3))
    assert not held.holds(claim_under(ONE, 2))
    assert not held.holds(claim_under(ONE, 4))
    assert not held.holds(claim_under(THREE, 3))


def test_a_node_without_a_cluster_holds_its_leases_for_ever() -> None:
    clock = VirtualClock()
    held = HeldLeases(clock)
    held.take(leases_of(one=3))
    clock.advance(10**6)
    assert held.are_valid
    assert held.holds(claim_under(ONE, 3))


def test_leases_that_have_run_out_are_held_but_must_not_be_acted_on() -> None:
    clock = VirtualClock()
    held = HeldLeases(clock)
    held.take(leases_of(one=3))
    held.valid_until_seconds = 5.0
    clock.advance(4.999)
    assert held.holds(claim_under(ONE, 3))
    clock.advance(0.001)
    assert not held.are_valid
    assert not held.holds(claim_under(ONE, 3))
    assert held.all == leases_of(one=3)
    held.valid_until_seconds = 10.0
    assert held.holds(claim_under(ONE, 3))


def test_a_jump_of_the_wall_clock_changes_nothing() -> None:
    clock = VirtualClock()
    held = HeldLeases(clock)
    held.take(leases_of(one=3))
    held.valid_until_seconds = 5.0
    clock.jump_wall(86_400)
    assert held.are_valid
    clock.advance(5)
    clock.jump_wall(-2 * 86_400)
    assert not held.are_valid


def test_attempts_of_a_leaving_shard_can_end_but_nothing_is_claimed() -> None:
    held = HeldLeases(VirtualClock())
    held.take(leases_of(one=3, two=1))
    held.leave([ONE, THREE])
    assert held.claimable == leases_of(two=1)
    assert held.leaving == leases_of(one=3)
    assert held.holds(claim_under(ONE, 3))
    assert len(held) == 2


def test_a_shard_that_is_not_left_after_all_can_be_claimed_from_again() -> None:
    held = HeldLeases(VirtualClock())
    held.take(leases_of(one=3, two=1))
    held.leave([ONE, TWO])
    held.stay([ONE])
    assert held.claimable == leases_of(one=3)
    assert held.leaving == leases_of(two=1)


def test_a_shard_that_was_dropped_and_taken_again_has_only_its_new_lease() -> None:
    held = HeldLeases(VirtualClock())
    held.take(leases_of(one=3, two=1))
    held.leave([ONE])
    held.lose([ONE])
    assert held.all == leases_of(two=1)
    held.take(leases_of(one=5))
    assert held.claimable == leases_of(one=5, two=1)
    assert held.leaving == {}
    assert not held.holds(claim_under(ONE, 3))
    assert held.holds(claim_under(ONE, 5))
