"""What is printed, and how a command ends."""

import sys
from enum import IntEnum
from typing import NoReturn

import typer
from rich.console import Console

PIPE_WIDTH = 200
"""Tables that go into a file or a pipe are not squeezed into 80 columns."""


class ExitCode(IntEnum):
    FAILED = 1
    """The server, or the start of one, refused; or what was checked is not as it should be."""

    USAGE = 2
    """The command line or the settings are wrong."""

    UNREACHABLE = 3
    """There is no server, or no store, to talk to."""


def console() -> Console:
    """Standard output as it is now; each print reaches it at once."""
    return Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def fail(message: str, code: int) -> NoReturn:
    """End the command with the message on standard error and nothing else."""
    print(message, file=sys.stderr, flush=True)
    raise typer.Exit(code)


def refuse(option: str, problem: str) -> NoReturn:
    """End the command because of what was typed."""
    fail(f"{option}: {problem}", ExitCode.USAGE)


def printable(text: str, max_characters: int | None = None) -> str:
    """One line that cannot drive a terminal: what came from elsewhere is shown, not obeyed."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if max_characters is not None and len(shown) > max_characters:
        return shown[: max_characters - 1] + "…"
    return shown
