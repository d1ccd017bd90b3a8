"""Options that several commands share, and the parsing of their values."""

import calendar
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from duetime.cli.client.server_lookup import DEFAULT_URL
from duetime.cli.commands.number_options import number, whole_number
from duetime.cli.terminal import refuse
from duetime.clock import SystemClock
from duetime.domain.instants import (
    Instant,
    format_instant,
    parse_duration_ms,
    parse_instant,
    plus_ms,
)

_SERVER_HELP = (
    "URL of the server; otherwise from .env, or the `duetime dev` that runs here, or this machine "
    f"with PORT [{DEFAULT_URL}]."
)
_KEY_HELP = "API key; otherwise from .env, or the one that `duetime dev` made."

NOW = "now"
"""The word for the present instant."""

ServerOption = Annotated[str | None, typer.Option(envvar="DUETIME_URL", help=_SERVER_HELP)]
ApiKeyOption = Annotated[
    str | None, typer.Option(envvar=["DUETIME_API_KEY", "API_KEY"], help=_KEY_HELP)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the server's data as JSON.")]
TimerJsonOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the server's data as JSON. In scripts give `--namespace` too: the members are "
        "then always those of the v1 API.",
    ),
]
WithSecretsOption = Annotated[
    bool,
    typer.Option(
        "--with-secrets",
        help="Show secrets in headers and URLs instead of [redacted]; the API key must be an "
        "admin's.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
ConfigOption = Annotated[
    Path | None, typer.Option(help="TOML file with settings (default: DUETIME_CONFIG).")
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the timer.")]
NamespaceOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Namespace of the timer [default].")
]
DueAfterOption = Annotated[
    str | None,
    typer.Option(metavar="INSTANT", help="Only timers due at this instant or later; may be `now`."),
]
DueBeforeOption = Annotated[
    str | None,
    typer.Option(metavar="INSTANT", help="Only timers due before this instant; may be `now`."),
]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="INSTANT", help="Due at this instant, e.g. 2030-01-31T12:00:00Z."),
]
InOption = Annotated[
    str | None,
    typer.Option("--in", metavar="DURATION", help="Due after this time, e.g. 10s or 1h30m."),
]
PayloadOption = Annotated[
    str | None,
    typer.Option(metavar="JSON|@FILE|-", help="Payload of the callback; - reads stdin."),
]
NoPayloadOption = Annotated[bool, typer.Option("--no-payload", help="Send no payload.")]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="Header of the callback; repeatable."),
]
CallbackTimeoutOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="Time limit of an attempt; for timers with an id of your own."
    ),
]
MetadataOption = Annotated[
    str | None,
    typer.Option(metavar="JSON|@FILE|-", help="Stored with the timer, not sent."),
]

RETRY_OPTIONS = (
    "--max-retries",
    "--initial-interval",
    "--max-interval",
    "--backoff-multiplier",
    "--max-duration",
)

MaxRetriesOption = Annotated[int | None, whole_number(0, help="Retries of a failed callback.")]
InitialIntervalOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Wait before the first retry.")
]
MaxIntervalOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Longest wait between two attempts.")
]
BackoffMultiplierOption = Annotated[
    float | None, number(1, help="Factor by which each further wait grows.")
]
MaxDurationOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="No retry later than this after the first attempt."),
]

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ]", re.ASCII)
_HEADER = re.compile(r"([^=:]+)[=:](.*)", re.DOTALL)


def read_instant(at: str | None, after: str | None) -> Instant | None:
    """The instant that `--at` or `--in` gives; None without them."""
    if at is not None and after is not None:
        refuse("--at / --in", "give one of them, not both")
    if at is not None:
        return _instant("--at", at)
    if after is not None:
        return plus_ms(SystemClock().now(), _duration_ms("--in", after))
    return None


def read_secrets(with_secrets: bool) -> dict[str, str]:
    """The query that asks for secrets, if they are wanted."""
    return {"secrets": "true"} if with_secrets else {}


def read_due_range(due_after: str | None, due_before: str | None) -> dict[str, str]:
    """The bounds that were given, as members of a v1 request. `NOW` is one of this machine's
    clock."""
    given = {"dueAfter": ("--due-after", due_after), "dueBefore": ("--due-before", due_before)}
    return {
        field: format_instant(
            SystemClock().now() if text == NOW else _instant(option, text, f", or `{NOW}`")
        )
        for field, (option, text) in given.items()
        if text is not None
    }


def read_moment(option: str, text: str, *, or_else: str = "") -> str:
    """An instant, checked, as a member of a request. `or_else` says what else it may be."""
    return format_instant(_instant(option, text, or_else))


def read_move(option: str, text: str) -> str:
    """The text itself, checked to be a duration that may follow a minus sign."""
    _duration_ms(option, text.removeprefix("-"))
    return text


def refuse_options_before(command: str, context: typer.Context) -> None:
    """Options before the subcommand would be ignored, because each subcommand has its own."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            refuse(parameter.opts[0], f"must come after `{command}`")


def _instant(option: str, text: str, or_else: str = "") -> Instant:
    try:
        return parse_instant(text)
    except ValueError as error:
        refuse(option, _no_such_day(text) or f"{error}{or_else}")


def _no_such_day(text: str) -> str | None:
    """The problem with a well-formed date that is on no calendar; None for any other text."""
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
    """The text itself, checked to be a duration."""
    _duration_ms(option, text)
    return text


def _duration_ms(option: str, text: str) -> int:
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        refuse(option, str(error))


def read_json(option: str, text: str) -> msgspec.Raw:
    """The JSON in the text, in the file named after an @, or on standard input for a dash. It is
    not decoded, because Python would change some numbers."""
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


def refuse_v1_options(body: Mapping[str, object], way_out: str) -> None:
    """`way_out` is the option that would select the v1 API."""
    if "callback_timeout" in body:
        refuse("--callback-timeout", f"is for timers of the v1 API: give {way_out} as well")


def read_headers(texts: list[str]) -> dict[str, str]:
    """Headers from texts like NAME=VALUE or, as in HTTP, `NAME: VALUE`."""
    headers = {}
    for text in texts:
        header = _HEADER.fullmatch(text)
        if header is None or not header[1].strip():
            refuse("--header", f"{text!r} is not NAME=VALUE or NAME: VALUE")
        headers[header[1].strip()] = header[2].strip()
    return headers


def default_payload(execute_at: Instant) -> dict[str, str]:
    """The payload of a callback for which none was given: the due instant, from which the
    receiver can compute the lateness."""
    return {"execute_at": format_instant(execute_at)}


def read_retry_policy(
    *,
    max_retries: int | None,
    initial_interval: str | None,
    max_interval: str | None,
    backoff_multiplier: float | None,
    max_duration: str | None,
) -> dict[str, object]:
    """The options that were given, as members of an API request."""
    policy: dict[str, object] = {}
    if max_retries is not None:
        policy["max_retries"] = max_retries
    if initial_interval is not None:
        policy["initial_interval"] = read_duration("--initial-interval", initial_interval)
    if max_interval is not None:
        policy["max_interval"] = read_duration("--max-interval", max_interval)
    if backoff_multiplier is not None:
        policy["backoff_multiplier"] = backoff_multiplier
    if max_duration is not None:
        policy["max_retry_attempts_duration"] = read_duration("--max-duration", max_duration)
    return policy
