"""The real service and engine, hours of faults in seconds. Every scenario comes from its seed."""

import pytest

from tests.simulation.campaign import play, seeds
from tests.simulation.scenario import Profile, Scenario

STORMY = Profile()
CALM = Profile(store_faults=False, deaths=False, clock_jumps=False, isolation=True)
PROFILES = {
    "stormy": STORMY,
    "calm": CALM,
    "deaths": Profile(store_faults=False, clock_jumps=False),
    "clock": Profile(store_faults=False, deaths=False),
    "store": Profile(deaths=False, clock_jumps=False),
}


def profile_of(seed: int) -> str:
    """Every other scenario has it all; the others have one kind of trouble each."""
    return "stormy" if seed % 2 else list(PROFILES)[seed // 2 % len(PROFILES)]


@pytest.mark.parametrize("seed", seeds())
def test_the_promises_hold(seed: int) -> None:
    play(lambda: Scenario(seed, PROFILES[profile_of(seed)]))


def test_a_seed_replays_exactly() -> None:
    assert play(lambda: Scenario(1, STORMY)) == play(lambda: Scenario(1, STORMY))
