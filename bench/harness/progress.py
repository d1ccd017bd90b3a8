"""What the person who waits sees meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

# The machine is busy with what is being measured; drawing must not take part in it.
REFRESHES_PER_SECOND = 2


class Steps:
    """One line per step: a bar where the amount is known, a moving one where it is not."""

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
        """A step that lasts as long as the block; call what it gives with the amount done."""
        task = self._progress.add_task(text, total=total)

        def advance_to(done: int) -> None:
            self._progress.update(task, completed=done)

        yield advance_to
        amount = total or 1
        self._progress.update(task, total=amount, completed=amount)
