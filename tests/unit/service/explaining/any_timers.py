"""Any record that a timer may have, and any report of a node on it."""

from hypothesis import strategies as st
from msgspec.structs import replace

from duetime.domain.instants import Instant
from duetime.domain.lateness.waits import WaitCause
from duetime.domain.retry import RetryPolicy
from duetime.domain.timer import Attempt, Timer, TimerStatus, Wait
from duetime.ports.endpoints import FiringReport
from duetime.testing import make_timer
from duetime.testing.virtual_clock import START_AT

SHORT = st.integers(-2_000_000, 5_000_000)
"""Microseconds around the start of the virtual clock."""


@st.composite
def timers(draw: st.DrawFn) -> Timer:
    """Timers with odd records too: clocks that were set back, attempts that were forgotten."""
    instants = st.builds(lambda offset: Instant(START_AT + offset), SHORT)
    made = draw(
        st.lists(
            st.builds(
                Attempt,
                number=st.integers(1, 6),
                due_at=instants,
                claimed_at=instants,
                sent_at=st.none() | instants,
                answered_at=st.none() | instants,
                recorded_outcome=st.none() | st.sampled_from(["interrupted", "later-word"]),
                error=st.none() | st.just("HTTP 500"),
                waits=st.lists(
                    st.builds(Wait, st.sampled_from(["lane", "later"]), st.integers(0, 10**7)),
                    max_size=4,
                ).map(tuple),
            ),
            max_size=5,
        )
    )
    status = draw(st.sampled_from(TimerStatus))
    timer = make_timer(execute_at=draw(instants), created_at=draw(instants))
    return replace(
        timer,
        status=status,
        attempts=tuple(made),
        attempt=draw(st.integers(0, 6)),
        due_at=draw(instants),
        claimed_at=draw(instants) if status is TimerStatus.EXECUTING else None,
        last_error=draw(st.none() | st.just("HTTP 500")),
        retry_policy=draw(st.none() | st.just(RetryPolicy())),
    )


REPORTS = st.builds(
    FiringReport,
    node=st.just("one"),
    owns_shard=st.booleans(),
    is_running=st.booleans(),
    owner=st.none() | st.just("two"),
    waits=st.lists(st.builds(Wait, st.sampled_from(WaitCause), st.integers(1, 10**7))).map(tuple),
    waits_for=st.none() | st.sampled_from(WaitCause),
    sent_at=st.none() | st.builds(lambda offset: Instant(START_AT + offset), SHORT),
    disk_is_full=st.booleans(),
    clock_ahead_ms=st.none() | st.just(-900.0),
)
