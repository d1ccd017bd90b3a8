"""Fixtures for all suites, and the Hypothesis profile."""

import os

from hypothesis import settings

pytest_plugins = [
    "tests.brokers.nats_fixtures",
    "tests.brokers.running_broker",
    "tests.brokers.valkey_fixtures",
    "tests.e2e.databases",
    "tests.exclusive_tests",
    "tests.postgres.fixtures",
]

# An example may take long on a busy machine; no property is about that.
settings.register_profile("duetime", deadline=None)
settings.load_profile("duetime")


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than processors: while one waits for a server, another computes."""
    return (os.cpu_count() or 1) + 1
