"""The lock between test workers: shared by many, or exclusive to one."""

import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pytest

from tests import exclusive_tests as plugin
from tests.exclusive_tests import TestLock

on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux shows whether a process waits"
)


class Holder:
    """A process that requests the lock, holds and releases it on demand."""

    def __init__(self, directory: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=obey, args=(directory, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def request(self, *, exclusive: bool) -> None:
        self._pipe.send(exclusive)
        assert self._pipe.recv() == "requested"

    def is_waiting(self) -> bool:
        """Whether the process sleeps without the lock; returns once it sleeps."""
        process = psutil.Process(self._process.pid)
        while process.status() != psutil.STATUS_SLEEPING:
            pass
        return not self._pipe.poll()

    def obtains(self) -> bool:
        return bool(self._pipe.recv() == "obtained")

    def release(self) -> None:
        self._pipe.send(None)

    def die(self) -> None:
        self._process.kill()
        self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.die()
        self._process.close()
        self._pipe.close()


def obey(directory: Path, pipe: "Connection[str, bool | None]") -> None:
    lock = TestLock(directory)
    with suppress(EOFError):
        while (exclusive := pipe.recv()) is not None:
            pipe.send("requested")
            with lock.held(exclusive=exclusive):
                pipe.send("obtained")
                pipe.recv()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Callable[[], Holder]]:
    """Makes processes that compete for the same lock."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Holder(tmp_path))


def test_several_share_the_lock(holder: Callable[[], Holder]) -> None:
    for each in (holder(), holder(), holder()):
        each.request(exclusive=False)
        assert each.obtains()


@on_linux
@pytest.mark.parametrize("exclusive", [False, True])
def test_an_exclusive_lock_keeps_others_out(holder: Callable[[], Holder], exclusive: bool) -> None:
    owner, other = holder(), holder()
    owner.request(exclusive=True)
    assert owner.obtains()
    other.request(exclusive=exclusive)
    assert other.is_waiting()
    owner.release()
    assert other.obtains()


@on_linux
def test_an_exclusive_request_is_granted_after_all_releases_and_not_overtaken(
    holder: Callable[[], Holder],
) -> None:
    first, second, exclusive, late = holder(), holder(), holder(), holder()
    for each in (first, second):
        each.request(exclusive=False)
        assert each.obtains()
    exclusive.request(exclusive=True)
    assert exclusive.is_waiting()
    late.request(exclusive=False)
    assert late.is_waiting()
    first.release()
    assert exclusive.is_waiting()
    second.release()
    assert exclusive.obtains()
    assert late.is_waiting()
    exclusive.release()
    assert late.obtains()


@on_linux
@pytest.mark.parametrize("exclusive", [False, True])
def test_the_death_of_the_holder_releases_the_lock(
    holder: Callable[[], Holder], exclusive: bool
) -> None:
    mortal, other = holder(), holder()
    mortal.request(exclusive=exclusive)
    assert mortal.obtains()
    other.request(exclusive=True)
    assert other.is_waiting()
    mortal.die()
    assert other.obtains()


@on_linux
def test_the_death_of_a_waiting_process_lets_the_next_one_in(
    holder: Callable[[], Holder],
) -> None:
    owner, waiting, late = holder(), holder(), holder()
    owner.request(exclusive=False)
    assert owner.obtains()
    waiting.request(exclusive=True)
    assert waiting.is_waiting()
    late.request(exclusive=False)
    waiting.die()
    assert late.obtains()


def test_the_lock_can_be_obtained_again(holder: Callable[[], Holder]) -> None:
    first, second = holder(), holder()
    for each in (first, second, first, second):
        each.request(exclusive=True)
        assert each.obtains()
        each.release()


def test_the_wait_for_the_lock_does_not_count_against_the_timeout(
    pytestconfig: pytest.Config,
) -> None:
    """Another hook of this kind starts the timeout, so the plugin's has to be outermost."""
    outermost = pytestconfig.hook.pytest_runtest_protocol.get_hookimpls()[-1]
    assert outermost.plugin is plugin


@pytest.mark.exclusive
def test_no_garbage_is_collected_during_an_exclusive_test() -> None:
    assert not gc.isenabled()


def test_garbage_is_collected_during_other_tests() -> None:
    assert gc.isenabled()
