"""Standard input and output, and the end of a command."""

import sys
from enum import IntEnum
from typing import NoReturn

import typer
from rich.console import Console

from duetime.event_loop import STORAGE_FAILED_STATUS

PIPE_WIDTH = 200
"""Columns in a file or a pipe, where tables need not fit a terminal."""


class ExitCode(IntEnum):
    FAILED = 1
    """The server refused, the service could not start, or a check found a problem."""

    USAGE = 2
    """The command line or the settings are wrong."""

    UNREACHABLE = 3
    """The server, the store or the broker cannot be reached."""

    STORAGE_FAILED = STORAGE_FAILED_STATUS
    """The storage failed while the service ran; nothing is lost, and it can be started again."""


def console() -> Console:
    """The current standard output; each print is written at once."""
    return Console(
        file=sys.stdout,
        width=None if sys.stdout.isatty() else PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def fail(message: str, code: int) -> NoReturn:
    """End the command, with only the message on standard error."""
    print(message, file=sys.stderr, flush=True)
    raise typer.Exit(code)


def refuse(option: str, problem: str) -> NoReturn:
    """End the command because an option is wrong."""
    fail(f"{option}: {problem}", ExitCode.USAGE)


def can_ask() -> bool:
    """Whether standard input is a terminal, on which a person can answer."""
    return sys.stdin.isatty()


def require_consent(*, given: bool) -> None:
    """End the command if consent was neither given by `--yes` nor can be asked for."""
    if not (given or can_ask()):
        refuse("--yes", "is needed because there is no terminal to ask on")


def printable(text: str, max_characters: int | None = None) -> str:
    """The text on one line, with control characters escaped so that they cannot drive a
    terminal."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if max_characters is not None and len(shown) > max_characters:
        return shown[: max_characters - 1] + "…"
    return shown
