"""Progress on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

# Drawing must not take CPU from the measurement.
REFRESHES_PER_SECOND = 2


class Steps:
    """One line per step, with a bar; the bar pulses when the total is unknown."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            console=console,
            refresh_per_second=REFRESHES_PER_SECOND,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A step that lasts as long as the block. Yields a function that takes the amount done."""
        task = self._progress.add_task(text, total=total)

        def advance_to(done: int) -> None:
            self._progress.update(task, completed=done)

        yield advance_to
        amount = total or 1
        self._progress.update(task, total=amount, completed=amount)
