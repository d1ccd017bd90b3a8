"""The progress of a long command, on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from duetime.clock import SystemClock
from duetime.domain.wording import counted, span

if TYPE_CHECKING:
    import rich.progress

LINE_SECONDS = 5.0
"""Time between two lines where there is no terminal for a bar."""

_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


AmountText = Callable[[float], str]
"""An amount in words: of bytes, or of what else is counted."""


def byte_text(count: float) -> str:
    for unit, size in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


class Progress(Protocol):
    def advance(self, amount: int, count: int | None = None) -> None:
        """Add bytes, and set the number of timers or lines so far, if it is known."""


class Silence:
    def advance(self, amount: int, count: int | None = None) -> None:
        pass


class ProgressBar:
    """A bar, and the speed once it is known."""

    def __init__(
        self,
        verb: str,
        total: int | None,
        display: "rich.progress.Progress",
        *,
        noun: str,
        amount_text: AmountText,
    ) -> None:
        self._verb = verb
        self._noun = noun
        self._display = display
        self._total = total
        self._amount_text = amount_text
        self._amount = 0
        self._task = display.add_task("", total=total, done=self._done(None))

    def advance(self, amount: int, count: int | None = None) -> None:
        self._amount += amount
        self._display.update(self._task, advance=amount, done=self._done(count))

    def _done(self, count: int | None) -> str:
        text = self._amount_text
        done = _done_text(self._verb, count, self._noun, self._amount, self._total, text)
        speeds = [task.finished_speed or task.speed for task in self._display.tasks]
        return done + "".join(f", {text(speed)}/s" for speed in speeds if speed)


class ProgressLines:
    """A line every few seconds."""

    def __init__(
        self,
        verb: str,
        total: int | None,
        *,
        noun: str,
        amount_text: AmountText = byte_text,
        monotonic: Callable[[], float],
        write: Callable[[str], object],
    ) -> None:
        self._verb = verb
        self._noun = noun
        self._amount_text = amount_text
        self._total = total or None
        self._monotonic = monotonic
        self._write = write
        self._amount = 0
        self._started_at = self._printed_at = monotonic()

    def advance(self, amount: int, count: int | None = None) -> None:
        self._amount += amount
        now = self._monotonic()
        if now - self._printed_at >= LINE_SECONDS:
            self._printed_at = now
            self._write(f"{self._line(count, now - self._started_at)}\n")

    def _line(self, count: int | None, elapsed_seconds: float) -> str:
        rate, text = self._amount / elapsed_seconds, self._amount_text
        done = _done_text(self._verb, count, self._noun, self._amount, self._total, text)
        if self._total is None:
            return f"{done}, {text(rate)}/s"
        share = min(self._amount / self._total, 1)
        left_ms = max(self._total - self._amount, 0) / rate * 1_000
        return f"{done} ({share:.0%}), {text(rate)}/s, {span(left_ms)} left"


def _done_text(
    verb: str,
    count: int | None,
    noun: str,
    amount: int,
    total: int | None,
    amount_text: AmountText,
) -> str:
    """Such as "sent 25,000 timers, 5.0 MB of 40.0 MB"."""
    things = "" if count is None else f" {counted(count, noun)},"
    of_total = "" if total is None else f" of {amount_text(total)}"
    return f"{verb}{things} {amount_text(amount)}{of_total}"


@contextmanager
def progress_on_stderr(
    verb: str, *, total_bytes: int | None, quiet: bool, noun: str = "timer"
) -> Iterator[Progress]:
    """A bar on a terminal, lines in a file or a pipe, nothing if quiet. Without a total the bar
    shows only that something moves."""
    with _progress(verb, total_bytes, quiet=quiet, noun=noun, amount_text=byte_text) as progress:
        yield progress


@contextmanager
def counting_on_stderr(verb: str, *, total: int, quiet: bool) -> Iterator[Progress]:
    """As `progress_on_stderr`, for a number of timers that is known beforehand."""

    def timers_text(count: float) -> str:
        return counted(round(count), "timer")

    with _progress(verb, total, quiet=quiet, noun="timer", amount_text=timers_text) as progress:
        yield progress


@contextmanager
def _progress(
    verb: str, total: int | None, *, quiet: bool, noun: str, amount_text: AmountText
) -> Iterator[Progress]:
    if quiet:
        yield Silence()
    elif sys.stderr.isatty():
        output = Console(stderr=True)
        with bar_on(output, verb, total, noun=noun, amount_text=amount_text) as bar:
            yield bar
    else:
        yield ProgressLines(
            verb,
            total,
            noun=noun,
            amount_text=amount_text,
            monotonic=SystemClock().monotonic,
            write=sys.stderr.write,
        )


@contextmanager
def bar_on(
    output: Console,
    verb: str,
    total: int | None,
    *,
    noun: str,
    amount_text: AmountText = byte_text,
) -> Iterator[Progress]:
    from rich import progress

    columns = [progress.BarColumn(), progress.TextColumn("{task.fields[done]}")]
    if total:
        columns.append(progress.TimeRemainingColumn())
    with progress.Progress(*columns, console=output) as display:
        yield ProgressBar(verb, total, display, noun=noun, amount_text=amount_text)
