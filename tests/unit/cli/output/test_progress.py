"""The progress of a long command: a bar, or lines where there is no terminal."""

import io

import pytest
from rich.console import Console

from duetime.cli.output.progress import ProgressLines, bar_on


class Output:
    """A clock that the test sets, and the lines that were written."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.lines: list[str] = []

    def progress(self, total_bytes: int | None) -> ProgressLines:
        return ProgressLines(
            "sent",
            total_bytes,
            noun="timer",
            monotonic=lambda: self.seconds,
            write=self.lines.append,
        )


def test_a_line_every_five_seconds() -> None:
    output = Output()
    progress = output.progress(40_000_000)
    for timers in range(1, 11):
        output.seconds += 1
        progress.advance(1_000_000, timers * 5_000)
    assert output.lines == [
        "sent 25,000 timers, 5.0 MB of 40.0 MB (12%), 1.0 MB/s, 35 s left\n",
        "sent 50,000 timers, 10.0 MB of 40.0 MB (25%), 1.0 MB/s, 30 s left\n",
    ]


def test_without_a_total_there_is_no_share_or_time_left() -> None:
    output = Output()
    progress = output.progress(None)
    output.seconds += 10
    progress.advance(5_000, 50)
    assert output.lines == ["sent 50 timers, 5.0 kB, 500 B/s\n"]


def test_without_timers_only_bytes_are_shown() -> None:
    output = Output()
    progress = output.progress(1_000)
    output.seconds += 10
    progress.advance(500)
    assert output.lines == ["sent 500 B of 1.0 kB (50%), 50 B/s, 10 s left\n"]


def test_a_growing_file_never_exceeds_100_percent() -> None:
    output = Output()
    progress = output.progress(1_000)
    output.seconds += 10
    progress.advance(2_000, 20)
    assert output.lines == ["sent 20 timers, 2.0 kB of 1.0 kB (100%), 200 B/s, 0 ms left\n"]


@pytest.mark.parametrize(
    ("size", "words"),
    [(739, "sent 9 lines, 739 B of 739 B"), (0, "sent 0 B of 0 B"), (None, "sent 9 lines, 739 B")],
)
def test_a_bar_shows_only_what_is_known(size: int | None, words: str) -> None:
    """A small file goes out in one piece, so its speed is never known."""
    screen = io.StringIO()
    output = Console(file=screen, force_terminal=True, color_system=None, width=120)
    with bar_on(output, "sent", size, noun="line") as progress:
        if size != 0:
            progress.advance(739, 9)
    shown = screen.getvalue()
    assert words in shown
    assert "?" not in shown.replace("\x1b[?25", "")


def test_lines_may_count_timers() -> None:
    output = Output()
    progress = ProgressLines(
        "copied",
        10_000,
        noun="timer",
        amount_text=lambda count: f"{count:,.0f} timers",
        monotonic=lambda: output.seconds,
        write=output.lines.append,
    )
    output.seconds += 5
    progress.advance(2_500)
    assert output.lines == ["copied 2,500 timers of 10,000 timers (25%), 500 timers/s, 15 s left\n"]
