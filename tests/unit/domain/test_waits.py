"""The parts of lateness add up, whatever they are made of."""

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.instants import Instant
from duetime.domain.lateness.waits import (
    MAX_WAITS,
    SHORTEST_WAIT,
    Interval,
    WaitCause,
    with_time,
    with_wait,
)
from duetime.domain.timer import Wait

CAUSES = st.sampled_from(WaitCause)
LENGTHS = st.integers(-10, 5_000_000)
INSTANTS = st.integers(0, 10_000_000).map(Instant)


@given(st.lists(st.tuples(CAUSES, LENGTHS), max_size=60))
def test_waits_are_kept_in_sum_and_bounded(
    added: list[tuple[WaitCause, int]],
) -> None:
    waits: list[Wait] = []
    for cause, length in added:
        with_wait(waits, cause, length)
    assert sum(wait.microseconds for wait in waits) == sum(max(0, length) for _, length in added)
    assert len(waits) <= MAX_WAITS + len(WaitCause)
    assert all(wait.microseconds > 0 for wait in waits)
    assert all(wait.microseconds >= SHORTEST_WAIT for wait in waits[:-1])


@given(
    INSTANTS,
    INSTANTS,
    INSTANTS,
    st.lists(st.builds(Interval, INSTANTS, INSTANTS, CAUSES), max_size=8),
)
def test_time_is_shared_out_without_a_rest(
    from_at: Instant, to_at: Instant, claimed_at: Instant, known: list[Interval]
) -> None:
    waits: list[Wait] = []
    with_time(waits, from_at, to_at, claimed_at, known)
    assert sum(wait.microseconds for wait in waits) == max(0, to_at - from_at)


def test_time_before_and_after_the_claim_is_told_apart() -> None:
    waits: list[Wait] = []
    with_time(waits, Instant(1_000_000), Instant(1_500_000), Instant(1_200_000))
    assert waits == [("claim", 200_000), ("engine", 300_000)]


def test_a_known_cause_goes_before_the_claim() -> None:
    waits: list[Wait] = []
    known = [Interval(Instant(0), Instant(1_150_000), WaitCause.NODE_DOWN)]
    with_time(waits, Instant(1_000_000), Instant(1_500_000), Instant(1_200_000), known)
    assert waits == [("node_down", 150_000), ("claim", 50_000), ("engine", 300_000)]


def test_waits_shorter_than_a_millisecond_join_their_neighbour() -> None:
    waits: list[Wait] = []
    for cause, length in (("claim", 400), ("breaker", 5_000), ("engine", 900), ("breaker", 1_000)):
        with_wait(waits, cause, length)
    assert waits == [("breaker", 7_300)]
