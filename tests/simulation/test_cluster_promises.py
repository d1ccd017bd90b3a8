"""Several real engines on one store, through joins, stops, deaths and cuts."""

import pytest
from msgspec.structs import replace

from tests.simulation.campaign import play, seeds
from tests.simulation.cluster_scenario import ClusterProfile, ClusterScenario

STORMY = ClusterProfile()
PEACEFUL = ClusterProfile(
    store_faults=False,
    cuts=False,
    outages=False,
    deaths=False,
    clock_jumps=False,
    lost_signals=False,
    short_graces=False,
)
ON_TIME = replace(PEACEFUL, moods=False, longest_lateness_ms=1_500)
PROFILES = {
    "moves on time": ON_TIME,
    "moves without signals": replace(ON_TIME, lost_signals=True),
    "moves on time beside slow endpoints": replace(ON_TIME, moods=True, isolation=True),
    "moves": replace(PEACEFUL, lost_signals=True),
    "deaths": replace(PEACEFUL, deaths=True, lost_signals=True, short_graces=True),
    "cuts": replace(PEACEFUL, cuts=True, lost_signals=True),
    "outages": replace(PEACEFUL, outages=True, lost_signals=True),
    "faults": replace(PEACEFUL, store_faults=True, lost_signals=True),
    "clock": replace(PEACEFUL, clock_jumps=True),
}


def profile_of(seed: int) -> ClusterProfile:
    """Every other scenario has it all; the others have one kind of trouble each."""
    return STORMY if seed % 2 else list(PROFILES.values())[seed // 2 % len(PROFILES)]


@pytest.mark.parametrize("seed", seeds())
def test_the_promises_hold_in_a_cluster(seed: int) -> None:
    play(lambda: ClusterScenario(seed, profile_of(seed)))


def test_a_seed_replays_exactly() -> None:
    assert play(lambda: ClusterScenario(1, STORMY)) == play(lambda: ClusterScenario(1, STORMY))
