"""Options that several commands share, and how their texts are read."""

import calendar
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from duetime.api.http.instant_text import parse_instant
from duetime.cli.client.server_lookup import DEFAULT_URL
from duetime.cli.output.terminal import refuse
from duetime.clock import SystemClock
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import Instant, format_instant, parse_duration_ms, plus_ms

_SERVER_HELP = f"The server (else from .env, with its PORT) [{DEFAULT_URL}]."
_KEY_HELP = "The API key (else from .env, or that of `duetime dev`)."

ServerOption = Annotated[str | None, typer.Option(envvar="DUETIME_URL", help=_SERVER_HELP)]
ApiKeyOption = Annotated[
    str | None, typer.Option(envvar=["DUETIME_API_KEY", "API_KEY"], help=_KEY_HELP)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the server's data as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Tell nothing of the progress.")]
ConfigOption = Annotated[
    Path | None, typer.Option(help="TOML file with settings (else DUETIME_CONFIG).")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The timer's id.")]
NamespaceOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The namespace of the timer [default].")
]
DueAfterOption = Annotated[
    str | None,
    typer.Option(metavar="INSTANT", help="Only timers whose instant is this one or later."),
]
DueBeforeOption = Annotated[
    str | None, typer.Option(metavar="INSTANT", help="Only timers whose instant is before this.")
]
AtOption = Annotated[
    str | None, typer.Option("--at", metavar="INSTANT", help="When, as 2030-01-31T12:00:00Z.")
]
InOption = Annotated[
    str | None, typer.Option("--in", metavar="DURATION", help="When, from now: 10s, 1h30m.")
]
PayloadOption = Annotated[
    str | None,
    typer.Option(metavar="JSON|@FILE|-", help="What the callback carries; - reads from stdin."),
]
NoPayloadOption = Annotated[bool, typer.Option("--no-payload", help="Send no payload.")]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="A header of the callback; repeatable."),
]
CallbackTimeoutOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="How long an attempt may take; for timers with an id of your own."
    ),
]
MetadataOption = Annotated[
    str | None,
    typer.Option(metavar="JSON|@FILE|-", help="Kept with the timer, not sent."),
]

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ]", re.ASCII)
_HEADER = re.compile(r"([^=:]+)[=:](.*)", re.DOTALL)


def read_instant(at: str | None, after: str | None) -> Instant | None:
    """The instant that `--at` or `--in` names, or None without them."""
    if at is not None and after is not None:
        refuse("--at / --in", "give one of them, not both")
    if at is not None:
        return _instant("--at", at)
    if after is not None:
        return plus_ms(SystemClock().now(), _duration_ms("--in", after))
    return None


def read_due_range(due_after: str | None, due_before: str | None) -> dict[str, str]:
    """The bounds that were named, as the v1 API takes them."""
    named = {"dueAfter": ("--due-after", due_after), "dueBefore": ("--due-before", due_before)}
    return {
        field: format_instant(_instant(option, text))
        for field, (option, text) in named.items()
        if text is not None
    }


def _instant(option: str, text: str) -> Instant:
    try:
        return parse_instant(option, text)
    except InvalidInput as error:
        refuse(option, _no_such_day(text) or error.problem)


def _no_such_day(text: str) -> str | None:
    """The problem of a date that is written well but is on no calendar."""
    date = _DATE.match(text)
    if date is None:
        return None
    year, month, day = map(int, date.groups())
    if year < 1 or not 1 <= month <= 12:
        return None
    days = calendar.monthrange(year, month)[1]
    return (
        None if 1 <= day <= days else f"{date[0][:10]} does not exist, that month has {days} days"
    )


def read_duration(option: str, text: str) -> str:
    """The text itself, once it is known to be a duration."""
    _duration_ms(option, text)
    return text


def _duration_ms(option: str, text: str) -> int:
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        refuse(option, str(error))


def read_json(option: str, text: str) -> msgspec.Raw:
    """The JSON of the text, of the file after an @, or of standard input for a dash. It stays as it
    is written: to Python a number is less than its digits."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return msgspec.json.decode(text, type=msgspec.Raw)
    except OSError as error:
        refuse(option, f"{error.filename}: {error.strerror}")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        refuse(option, f"is not valid JSON: {error}")


def refuse_both_payloads(payload: str | None, no_payload: bool) -> None:
    if payload is not None and no_payload:
        refuse("--payload / --no-payload", "give one of them, not both")


def refuse_members_of_v1(body: Mapping[str, object]) -> None:
    if "callback_timeout" in body:
        refuse("--callback-timeout", "is for timers of the v1 API: give --id or --namespace, too")


def read_headers(texts: list[str]) -> dict[str, str]:
    """Written as NAME=VALUE, or as `NAME: VALUE` like in HTTP; no name contains either sign."""
    headers = {}
    for text in texts:
        header = _HEADER.fullmatch(text)
        if header is None or not header[1].strip():
            refuse("--header", f"{text!r} is not NAME=VALUE or NAME: VALUE")
        headers[header[1].strip()] = header[2].strip()
    return headers


def default_payload(execute_at: Instant) -> dict[str, str]:
    """What a callback carries when nothing else was asked for: the instant it was due, so that
    whoever receives it can tell how late it is."""
    return {"execute_at": format_instant(execute_at)}
