"""Tests that measure real time run alone, also where several workers share the machine:

    @pytest.mark.alone
    async def test_x() -> None: ...

Such a test waits until the tests of all other workers have ended, and they wait for it. Waiting
counts neither as part of a test nor against its timeout. Nor does the test's own process stop to
collect garbage meanwhile: after thousands of tests that takes a third of a second, which a receiver
in this process would take for the lateness of the service.
"""

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
_SOLITUDE = pytest.StashKey["Solitude"]()
_WORKER_INPUT = "duetime_solitude_directory"


class Solitude:
    """A lock between processes: any number hold it together, or one holds it alone.

    Nobody is passed over for ever: while one waits, those who come later wait behind it. A process
    holds it at most once at a time, and a process that dies holds it no more.
    """

    def __init__(self, directory: Path) -> None:
        self._turnstile = (directory / "turnstile.lock").open("a")
        self._room = (directory / "room.lock").open("a")

    def close(self) -> None:
        self._turnstile.close()
        self._room.close()

    @contextmanager
    def held(self, *, alone: bool) -> Iterator[None]:
        # Whoever waits for the room stands in the turnstile, where nobody overtakes.
        fcntl.flock(self._turnstile, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)


def pytest_configure(config: pytest.Config) -> None:
    worker_input: dict[str, str] | None = getattr(config, "workerinput", None)
    if worker_input is not None:
        config.stash[_SOLITUDE] = Solitude(Path(worker_input[_WORKER_INPUT]))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Before a worker starts, in the process that controls it."""
    stash = node.config.stash
    if _DIRECTORY not in stash:
        stash[_DIRECTORY] = Path(tempfile.mkdtemp(prefix="duetime-solitude-"))
    node.workerinput[_WORKER_INPUT] = str(stash[_DIRECTORY])


def pytest_unconfigure(config: pytest.Config) -> None:
    if _SOLITUDE in config.stash:
        config.stash[_SOLITUDE].close()
    if _DIRECTORY in config.stash:
        shutil.rmtree(config.stash[_DIRECTORY], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """At the end they wait for each other only, and not again and again for a long test."""
    if _SOLITUDE in config.stash:
        items.sort(key=_is_alone)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Around everything else that is done for a test, and so around the clock of its timeout."""
    alone = _is_alone(item)
    solitude = item.config.stash.get(_SOLITUDE, None)
    with (
        nullcontext() if solitude is None else solitude.held(alone=alone),
        _garbage_left() if alone else nullcontext(),
    ):
        return (yield)


@contextmanager
def _garbage_left() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None
