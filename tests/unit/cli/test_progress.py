"""Progress where there is no terminal."""

from duetime.cli.output.progress import ProgressLines


class Told:
    """A clock that is set by hand, and the lines that were written."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.lines: list[str] = []

    def progress(self, total_bytes: int | None) -> ProgressLines:
        return ProgressLines(
            "sent", total_bytes, monotonic=lambda: self.seconds, write=self.lines.append
        )


def test_a_line_every_five_seconds() -> None:
    told = Told()
    progress = told.progress(40_000_000)
    for timers in range(1, 11):
        told.seconds += 1
        progress.advance(1_000_000, timers * 5_000)
    assert told.lines == [
        "sent 25,000 timers, 5.0 MB of 40.0 MB (12%), 1.0 MB/s, 35 s left\n",
        "sent 50,000 timers, 10.0 MB of 40.0 MB (25%), 1.0 MB/s, 30 s left\n",
    ]


def test_without_an_end_in_sight() -> None:
    told = Told()
    progress = told.progress(None)
    told.seconds += 10
    progress.advance(5_000, 50)
    assert told.lines == ["sent 50 timers, 5.0 kB, 500 B/s\n"]


def test_a_file_that_grows_is_never_more_than_complete() -> None:
    told = Told()
    progress = told.progress(1_000)
    told.seconds += 10
    progress.advance(2_000, 20)
    assert told.lines == ["sent 20 timers, 2.0 kB of 1.0 kB (100%), 200 B/s, 0 ms left\n"]
