"""The short way to the waits of a timer says the same as the long one."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.keys import Epoch
from duetime.domain.lateness.waits import SHORTEST_WAIT, WaitCause
from duetime.domain.timer import Waits
from duetime.domain.transitions import claim_of, claimed
from duetime.engine.wait_log import WaitLog
from duetime.testing import make_timer
from duetime.testing.virtual_clock import START_AT

LENGTHS = st.integers(0, 4 * SHORTEST_WAIT)


def waits_of(claimed_after: int, waits_after: int, waited: int) -> Waits:
    """The waits of a timer that was claimed and began to wait so long after its instant, and was
    sent when it had waited in its lane."""
    claimed_at = Instant(START_AT + claimed_after)
    now = Instant(START_AT + waits_after + waited)
    timer = make_timer(execute_at=START_AT, created_at=START_AT)
    claim = claim_of(claimed(timer, epoch=Epoch(1), now=claimed_at))
    in_lane = (WaitCause.LANE, waited / 1_000_000)
    return WaitLog().take_waits(replace(claim, due_at=START_AT), now, now - START_AT, in_lane)


@given(st.integers(-SHORTEST_WAIT, 4 * SHORTEST_WAIT), LENGTHS, LENGTHS)
def test_both_ways_say_the_same(claimed_after: int, engine: int, waited: int) -> None:
    waits_after = max(claimed_after, 0) + engine
    short = waits_of(claimed_after, waits_after, waited)
    with patch.object(WaitLog, "_knows_more", return_value=True):
        long = waits_of(claimed_after, waits_after, waited)
    assert sum(wait.microseconds for wait in short) == waits_after + waited
    if waits_after >= SHORTEST_WAIT:
        assert short == long
