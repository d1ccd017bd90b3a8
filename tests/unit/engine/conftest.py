from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[EventDict]]:
    """The log entries of the engine, kept out of the output."""
    structlog.reset_defaults()
    with capture_logs() as entries:
        yield entries
