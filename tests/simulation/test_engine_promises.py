"""The real service and engine, hours of faults in seconds. Every scenario comes from its seed.

DUETIME_SEED=17 pytest tests/simulation      replays the scenario of seed 17
DUETIME_SEEDS=1000 pytest tests/simulation   runs a campaign
"""

import os
import random

import pytest
from structlog.testing import capture_logs

from duetime.testing import run_on_virtual_time
from tests.simulation.scenario import Profile, Scenario

DEFAULT_SEEDS = 40

STORMY = Profile()
CALM = Profile(store_faults=False, deaths=False, clock_jumps=False, isolation=True)
PROFILES = {
    "stormy": STORMY,
    "calm": CALM,
    "deaths": Profile(store_faults=False, clock_jumps=False),
    "clock": Profile(store_faults=False, deaths=False),
    "store": Profile(deaths=False, clock_jumps=False),
}


def seeds() -> list[int]:
    if "DUETIME_SEED" in os.environ:
        return [int(os.environ["DUETIME_SEED"])]
    return list(range(int(os.environ.get("DUETIME_SEEDS", DEFAULT_SEEDS))))


def profile_of(seed: int) -> str:
    """Every other scenario has it all; the others have one kind of trouble each."""
    return "stormy" if seed % 2 else list(PROFILES)[seed // 2 % len(PROFILES)]


def play(seed: int, profile: Profile) -> list[str]:
    state = random.getstate()
    scenario = Scenario(seed, profile)
    try:
        with capture_logs() as logs:
            run_on_virtual_time(scenario.run())
    finally:
        random.setstate(state)
    surprises = [
        entry for entry in logs if entry["event"] in ("engine.step_failed", "destination.broken")
    ]
    assert not surprises, surprises[0]
    return scenario.trace


@pytest.mark.parametrize("seed", seeds())
def test_the_promises_hold(seed: int) -> None:
    play(seed, PROFILES[profile_of(seed)])


def test_a_seed_replays_exactly() -> None:
    assert play(1, STORMY) == play(1, STORMY)
