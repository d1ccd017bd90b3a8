"""How long random and crash tests go on: `make campaign` runs them ten times as long."""

import os

EFFORT = int(os.environ.get("DUETIME_TEST_EFFORT", "1"))
"""Factor by which a campaign repeats what a test does at random."""


def scaled(usual: int) -> int:
    """The number of kills, histories, seeds or made-up requests, given the usual one."""
    return usual * EFFORT
