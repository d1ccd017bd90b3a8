"""Fixtures for all suites, the order of tests, and the Hypothesis profile."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.effort import EFFORT

pytest_plugins = [
    "tests.brokers.nats_fixtures",
    "tests.brokers.running_broker",
    "tests.brokers.valkey_fixtures",
    "tests.real_server.databases",
    "tests.real_server.connect_record",
    "tests.real_server.failing_disk",
    "tests.real_server.small_disk",
    "tests.real_server.wrong_clock",
    "tests.exclusive_tests",
    "tests.postgres.fixtures",
]

TESTS = Path(__file__).parent
SUITES_OF_LONG_TESTS = {"browser", "cluster", "crash", "e2e", "monitoring"}
CAMPAIGN_TIMEOUT_SECONDS = 3_600

# An example may take long on a busy machine; no property is about that.
settings.register_profile("duetime", deadline=None)
settings.load_profile("duetime")


def pytest_configure() -> None:
    """A shell lets programs that it starts in the background ignore SIGINT. Commands under test
    would inherit that, and not end at Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than processors: while some wait for servers, others compute."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Suites of long tests come first, so that all workers end together, with short tests.
    A campaign has time."""
    items.sort(key=lambda item: item.path.relative_to(TESTS).parts[0] not in SUITES_OF_LONG_TESTS)
    if EFFORT > 1:
        for item in items:
            item.add_marker(pytest.mark.timeout(CAMPAIGN_TIMEOUT_SECONDS), append=False)
