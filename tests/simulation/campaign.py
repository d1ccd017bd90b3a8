"""Which scenarios are played, and how.

DUETIME_SEED=17 pytest tests/simulation          replays the scenarios of seed 17
DUETIME_TEST_EFFORT=10 pytest tests/simulation   plays ten times as many
"""

import random
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from structlog.testing import capture_logs

from duetime.testing import run_on_virtual_time
from tests.effort import scaled
from tests.seed import given_seed

SEEDS = scaled(40)

SURPRISES = ("loop.step_failed", "destination.broken", "engine.stopped_with_unsettled")


class Playable(Protocol):
    trace: list[str]

    def run(self) -> Coroutine[Any, Any, None]: ...


def seeds() -> list[int]:
    seed = given_seed()
    return list(range(SEEDS)) if seed is None else [seed]


def play(new_scenario: Callable[[], Playable]) -> list[str]:
    """Run the scenario; returns the record of its steps."""
    state = random.getstate()
    try:
        scenario = new_scenario()
        with capture_logs() as logs:
            run_on_virtual_time(scenario.run())
    finally:
        random.setstate(state)
    surprises = [entry for entry in logs if entry["event"] in SURPRISES]
    assert not surprises, surprises[0]
    return scenario.trace
