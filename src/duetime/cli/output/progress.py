"""The progress of a long command, on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from duetime.cli.output.wording import span
from duetime.clock import SystemClock

if TYPE_CHECKING:
    import rich.progress

LINE_SECONDS = 5.0
"""Time between two lines where there is no terminal for a bar."""

_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


class Progress(Protocol):
    def advance(self, byte_count: int, timers: int | None = None) -> None:
        """Add bytes, and set the number of timers so far, if it is known."""


class Silence:
    def advance(self, byte_count: int, timers: int | None = None) -> None:
        pass


class ProgressBar:
    def __init__(
        self, verb: str, display: "rich.progress.Progress", task: "rich.progress.TaskID"
    ) -> None:
        self._verb = verb
        self._display = display
        self._task = task

    def advance(self, byte_count: int, timers: int | None = None) -> None:
        self._display.update(self._task, advance=byte_count, done=_done(self._verb, timers))


class ProgressLines:
    """A line every few seconds."""

    def __init__(
        self,
        verb: str,
        total_bytes: int | None,
        *,
        monotonic: Callable[[], float],
        write: Callable[[str], object],
    ) -> None:
        self._verb = verb
        self._total_bytes = total_bytes
        self._monotonic = monotonic
        self._write = write
        self._bytes = 0
        self._started_at = self._printed_at = monotonic()

    def advance(self, byte_count: int, timers: int | None = None) -> None:
        self._bytes += byte_count
        now = self._monotonic()
        if now - self._printed_at >= LINE_SECONDS:
            self._printed_at = now
            self._write(f"{self._line(timers, now - self._started_at)}\n")

    def _line(self, timers: int | None, elapsed_seconds: float) -> str:
        rate = self._bytes / elapsed_seconds
        comma = "" if timers is None else ","
        done = f"{_done(self._verb, timers)}{comma} {byte_text(self._bytes)}"
        if not self._total_bytes:
            return f"{done}, {byte_text(rate)}/s"
        share = min(self._bytes / self._total_bytes, 1)
        left_ms = max(self._total_bytes - self._bytes, 0) / rate * 1_000
        return (
            f"{done} of {byte_text(self._total_bytes)} ({share:.0%}), "
            f"{byte_text(rate)}/s, {span(left_ms)} left"
        )


def _done(verb: str, timers: int | None) -> str:
    return verb if timers is None else f"{verb} {timers:,} timers"


def byte_text(count: float) -> str:
    for unit, size in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


@contextmanager
def progress_on_stderr(verb: str, *, total_bytes: int | None, quiet: bool) -> Iterator[Progress]:
    """A bar on a terminal, lines in a file or a pipe, nothing if quiet. Without a total the bar
    shows only that something moves."""
    if quiet:
        yield Silence()
    elif sys.stderr.isatty():
        with _bar(verb, total_bytes) as bar:
            yield bar
    else:
        yield ProgressLines(
            verb, total_bytes, monotonic=SystemClock().monotonic, write=sys.stderr.write
        )


@contextmanager
def _bar(verb: str, total_bytes: int | None) -> Iterator[Progress]:
    from rich import progress

    columns = [
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TextColumn("{task.fields[done]}"),
        progress.TimeRemainingColumn(),
    ]
    with progress.Progress(*columns, console=Console(stderr=True)) as display:
        yield ProgressBar(verb, display, display.add_task("", total=total_bytes, done=verb))
