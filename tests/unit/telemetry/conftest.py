"""Logs as they were before a test."""

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    for name in ("asyncio", "httpcore", "httpx", "uvicorn"):
        logging.getLogger(name).setLevel(logging.NOTSET)
