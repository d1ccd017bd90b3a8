"""The lock that keeps tests apart: many are in together, or one is in alone."""

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

from tests import solitude as plugin
from tests.solitude import Solitude

on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells whether a process waits"
)


class Visitor:
    """A process that does as it is told: asks, is in as soon as it may be, and leaves."""

    def __init__(self, directory: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._said, theirs = context.Pipe()
        self._process = context.Process(target=visit, args=(directory, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def asks(self, *, alone: bool) -> None:
        self._said.send(alone)
        assert self._said.recv() == "asking"

    def is_waiting(self) -> bool:
        """Told once it has come to a halt, be it before the door or behind it."""
        process = psutil.Process(self._process.pid)
        while process.status() != psutil.STATUS_SLEEPING:
            pass
        return not self._said.poll()

    def is_in(self) -> bool:
        return bool(self._said.recv() == "in")

    def leaves(self) -> None:
        self._said.send(None)

    def dies(self) -> None:
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
        self.dies()
        self._process.close()
        self._said.close()


def visit(directory: Path, told: "Connection[str, bool | None]") -> None:
    """The life of a visitor."""
    solitude = Solitude(directory)
    with suppress(EOFError):
        while (alone := told.recv()) is not None:
            told.send("asking")
            with solitude.held(alone=alone):
                told.send("in")
                told.recv()


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Callable[[], Visitor]]:
    """Makes visitors of one and the same place."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Visitor(tmp_path))


def test_many_are_in_together(visitor: Callable[[], Visitor]) -> None:
    for one in (visitor(), visitor(), visitor()):
        one.asks(alone=False)
        assert one.is_in()


@on_linux
@pytest.mark.parametrize("alone", [False, True])
def test_nobody_comes_in_to_one_who_is_alone(visitor: Callable[[], Visitor], alone: bool) -> None:
    hermit, other = visitor(), visitor()
    hermit.asks(alone=True)
    assert hermit.is_in()
    other.asks(alone=alone)
    assert other.is_waiting()
    hermit.leaves()
    assert other.is_in()


@on_linux
def test_one_who_wants_to_be_alone_waits_for_all_who_are_in(
    visitor: Callable[[], Visitor],
) -> None:
    one, other, hermit = visitor(), visitor(), visitor()
    for guest in (one, other):
        guest.asks(alone=False)
        assert guest.is_in()
    hermit.asks(alone=True)
    assert hermit.is_waiting()
    one.leaves()
    assert hermit.is_waiting()
    other.leaves()
    assert hermit.is_in()


@on_linux
def test_those_who_come_later_do_not_overtake_one_who_waits_to_be_alone(
    visitor: Callable[[], Visitor],
) -> None:
    early, hermit, late = visitor(), visitor(), visitor()
    early.asks(alone=False)
    assert early.is_in()
    hermit.asks(alone=True)
    assert hermit.is_waiting()
    late.asks(alone=False)
    assert late.is_waiting()
    early.leaves()
    assert hermit.is_in()
    assert late.is_waiting()
    hermit.leaves()
    assert late.is_in()


@on_linux
@pytest.mark.parametrize("alone", [False, True])
def test_the_dead_keep_nobody_out(visitor: Callable[[], Visitor], alone: bool) -> None:
    mortal, other = visitor(), visitor()
    mortal.asks(alone=alone)
    assert mortal.is_in()
    other.asks(alone=True)
    assert other.is_waiting()
    mortal.dies()
    assert other.is_in()


@on_linux
def test_one_who_dies_waiting_keeps_nobody_out(visitor: Callable[[], Visitor]) -> None:
    guest, hermit, late = visitor(), visitor(), visitor()
    guest.asks(alone=False)
    assert guest.is_in()
    hermit.asks(alone=True)
    assert hermit.is_waiting()
    late.asks(alone=False)
    hermit.dies()
    assert late.is_in()


def test_one_who_left_may_come_again(visitor: Callable[[], Visitor]) -> None:
    one, other = visitor(), visitor()
    for guest in (one, other, one, other):
        guest.asks(alone=True)
        assert guest.is_in()
        guest.leaves()


def test_waiting_is_outside_of_all_that_is_done_for_a_test(pytestconfig: pytest.Config) -> None:
    """The clock of its timeout above all, which another hook of this kind starts."""
    outermost = pytestconfig.hook.pytest_runtest_protocol.get_hookimpls()[-1]
    assert outermost.plugin is plugin


@pytest.mark.alone
def test_one_who_is_alone_is_not_disturbed_by_the_garbage_of_others() -> None:
    assert not gc.isenabled()


def test_garbage_is_collected_where_others_are() -> None:
    assert gc.isenabled()
