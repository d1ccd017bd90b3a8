"""Tests marked with `pytest.mark.exclusive` measure real time: no other worker runs a test then."""

import fcntl
import gc
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

_DIRECTORY = pytest.StashKey[Path]()
_LOCK = pytest.StashKey["TestLock"]()
_WORKER_INPUT = "duetime_test_lock_directory"


class TestLock:
    """A lock between processes, shared by any number or exclusive to one.

    A waiting process is not overtaken by later ones. A process holds the lock at most once, and
    its death releases the lock.
    """

    __test__ = False

    def __init__(self, directory: Path) -> None:
        self._queue = (directory / "queue.lock").open("a")
        self._lock = (directory / "tests.lock").open("a")

    def close(self) -> None:
        self._queue.close()
        self._lock.close()

    @contextmanager
    def held(self, *, exclusive: bool) -> Iterator[None]:
        # Only the holder of the queue may wait for the lock, so nobody overtakes it.
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)


def pytest_configure(config: pytest.Config) -> None:
    worker_input: dict[str, str] | None = getattr(config, "workerinput", None)
    if worker_input is not None:
        config.stash[_LOCK] = TestLock(Path(worker_input[_WORKER_INPUT]))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Runs in the controlling process, before a worker starts."""
    stash = node.config.stash
    if _DIRECTORY not in stash:
        stash[_DIRECTORY] = Path(tempfile.mkdtemp(prefix="duetime-test-lock-"))
    node.workerinput[_WORKER_INPUT] = str(stash[_DIRECTORY])


def pytest_unconfigure(config: pytest.Config) -> None:
    if _LOCK in config.stash:
        config.stash[_LOCK].close()
    if _DIRECTORY in config.stash:
        shutil.rmtree(config.stash[_DIRECTORY], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Exclusive tests run last, so that none of them waits for a long test of another worker."""
    if _LOCK in config.stash:
        items.sort(key=_is_exclusive)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The outermost hook: the clock of a test's timeout starts inside it, after the wait for other
    workers."""
    exclusive = _is_exclusive(item)
    lock = item.config.stash.get(_LOCK, None)
    with (
        nullcontext() if lock is None else lock.held(exclusive=exclusive),
        _without_garbage_collection() if exclusive else nullcontext(),
    ):
        return (yield)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """After thousands of tests one collection takes a third of a second, which a receiver in this
    process would count as lateness of the service."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _is_exclusive(item: pytest.Item) -> bool:
    return item.get_closest_marker("exclusive") is not None
