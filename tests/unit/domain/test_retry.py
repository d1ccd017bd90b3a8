import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.retry import JITTER, RetryPolicy

POLICY = RetryPolicy(initial_interval_ms=1_000, backoff_multiplier=3.0, max_interval_ms=20_000)

policies = st.builds(
    RetryPolicy,
    initial_interval_ms=st.integers(1, 10**9),
    backoff_multiplier=st.floats(1, 1_000),
    max_interval_ms=st.integers(1, 10**9),
)
chances = st.floats(0, 1, exclude_max=True)
many_failures = st.integers(1, 100_000)


@pytest.mark.parametrize(
    ("failures", "interval_ms"), [(1, 1_000), (2, 3_000), (3, 9_000), (4, 20_000), (99, 20_000)]
)
def test_the_interval_grows_up_to_its_maximum(failures: int, interval_ms: int) -> None:
    assert POLICY.interval_ms(failures) == interval_ms


def test_the_defaults_are_as_in_the_contract() -> None:
    policy = RetryPolicy()
    assert policy.max_retries == 3
    assert [policy.interval_ms(n) for n in (1, 2, 3, 9)] == [30_000, 60_000, 120_000, 600_000]
    assert policy.max_duration_ms == 24 * 3_600_000


@given(policies, many_failures)
def test_an_interval_is_never_above_its_maximum_whatever_the_growth(
    policy: RetryPolicy, failures: int
) -> None:
    assert 0 < policy.interval_ms(failures) <= policy.max_interval_ms


@given(policies, st.integers(1, 1_000))
def test_intervals_never_shrink(policy: RetryPolicy, failures: int) -> None:
    assert policy.interval_ms(failures) <= policy.interval_ms(failures + 1)


@given(policies, many_failures, chances, st.none() | st.integers(0, 10**12))
def test_jitter_only_stretches_and_only_so_far(
    policy: RetryPolicy, failures: int, chance: float, retry_after_ms: int | None
) -> None:
    delay = policy.delay_ms(failures, chance, retry_after_ms)
    assert policy.interval_ms(failures) <= delay <= policy.max_interval_ms * (1 + JITTER)


@pytest.mark.parametrize(
    ("retry_after_ms", "delay_ms"),
    [(None, 1_000), (0, 1_000), (500, 1_000), (1_500, 1_500), (20_000, 20_000), (10**9, 20_000)],
)
def test_the_endpoints_wish_is_honoured_between_interval_and_maximum(
    retry_after_ms: int | None, delay_ms: int
) -> None:
    assert POLICY.delay_ms(1, 0.0, retry_after_ms) == delay_ms


def test_jitter_spreads_retries() -> None:
    assert POLICY.delay_ms(1, 0.5) == pytest.approx(1_000 * (1 + JITTER / 2))
