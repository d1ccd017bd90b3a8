"""The progress of a long command, on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from duetime.cli.output.wording import counted, span
from duetime.clock import SystemClock

if TYPE_CHECKING:
    import rich.progress

LINE_SECONDS = 5.0
"""Time between two lines where there is no terminal for a bar."""

_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


class Progress(Protocol):
    def advance(self, byte_count: int, count: int | None = None) -> None:
        """Add bytes, and set the number of timers or lines so far, if it is known."""


class Silence:
    def advance(self, byte_count: int, count: int | None = None) -> None:
        pass


class ProgressBar:
    """A bar, and the speed once it is known."""

    def __init__(
        self, verb: str, total_bytes: int | None, display: "rich.progress.Progress", *, noun: str
    ) -> None:
        self._verb = verb
        self._noun = noun
        self._display = display
        self._total_bytes = total_bytes
        self._bytes = 0
        self._task = display.add_task("", total=total_bytes, done=self._done(None))

    def advance(self, byte_count: int, count: int | None = None) -> None:
        self._bytes += byte_count
        self._display.update(self._task, advance=byte_count, done=self._done(count))

    def _done(self, count: int | None) -> str:
        done = _amount(self._verb, count, self._noun, self._bytes, self._total_bytes)
        speeds = [task.finished_speed or task.speed for task in self._display.tasks]
        return done + "".join(f", {byte_text(speed)}/s" for speed in speeds if speed)


class ProgressLines:
    """A line every few seconds."""

    def __init__(
        self,
        verb: str,
        total_bytes: int | None,
        *,
        noun: str,
        monotonic: Callable[[], float],
        write: Callable[[str], object],
    ) -> None:
        self._verb = verb
        self._noun = noun
        self._total_bytes = total_bytes or None
        self._monotonic = monotonic
        self._write = write
        self._bytes = 0
        self._started_at = self._printed_at = monotonic()

    def advance(self, byte_count: int, count: int | None = None) -> None:
        self._bytes += byte_count
        now = self._monotonic()
        if now - self._printed_at >= LINE_SECONDS:
            self._printed_at = now
            self._write(f"{self._line(count, now - self._started_at)}\n")

    def _line(self, count: int | None, elapsed_seconds: float) -> str:
        rate = self._bytes / elapsed_seconds
        done = _amount(self._verb, count, self._noun, self._bytes, self._total_bytes)
        if self._total_bytes is None:
            return f"{done}, {byte_text(rate)}/s"
        share = min(self._bytes / self._total_bytes, 1)
        left_ms = max(self._total_bytes - self._bytes, 0) / rate * 1_000
        return f"{done} ({share:.0%}), {byte_text(rate)}/s, {span(left_ms)} left"


def _amount(
    verb: str, count: int | None, noun: str, byte_count: int, total_bytes: int | None
) -> str:
    """Such as "sent 25,000 timers, 5.0 MB of 40.0 MB"."""
    things = "" if count is None else f" {counted(count, noun)},"
    total = "" if total_bytes is None else f" of {byte_text(total_bytes)}"
    return f"{verb}{things} {byte_text(byte_count)}{total}"


def byte_text(count: float) -> str:
    for unit, size in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


@contextmanager
def progress_on_stderr(
    verb: str, *, total_bytes: int | None, quiet: bool, noun: str = "timer"
) -> Iterator[Progress]:
    """A bar on a terminal, lines in a file or a pipe, nothing if quiet. Without a total the bar
    shows only that something moves."""
    if quiet:
        yield Silence()
    elif sys.stderr.isatty():
        with bar_on(Console(stderr=True), verb, total_bytes, noun=noun) as bar:
            yield bar
    else:
        yield ProgressLines(
            verb,
            total_bytes,
            noun=noun,
            monotonic=SystemClock().monotonic,
            write=sys.stderr.write,
        )


@contextmanager
def bar_on(output: Console, verb: str, total_bytes: int | None, *, noun: str) -> Iterator[Progress]:
    from rich import progress

    columns = [progress.BarColumn(), progress.TextColumn("{task.fields[done]}")]
    if total_bytes:
        columns.append(progress.TimeRemainingColumn())
    with progress.Progress(*columns, console=output) as display:
        yield ProgressBar(verb, total_bytes, display, noun=noun)
