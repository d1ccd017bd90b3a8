"""`duetime audit-log`: who did what, and with which result."""

import shlex
from typing import Annotated

import msgspec
import typer

from duetime.cli.client.answers import AuditEntry, AuditLogPage
from duetime.cli.client.v1 import V1Client
from duetime.cli.commands.number_options import whole_number
from duetime.cli.commands.options import (
    ApiKeyOption,
    ServerOption,
    read_moment,
)
from duetime.cli.commands.security.audit_follower import AuditFollower
from duetime.cli.output.security.audit_entries import print_entries, print_entry_line
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import printable, refuse
from duetime.clock import SystemClock
from duetime.domain.instants import format_instant, parse_duration_ms, plus_ms
from duetime.domain.limits import DEFAULT_PAGE_TIMERS, MAX_V1_PAGE_TIMERS
from duetime.domain.wording import counted

PATH = "/audit-log"


def audit_log(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on showing entries as they are made.")
    ] = False,
    actor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only entries of the key with this name.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(metavar="WORD", help="Only this action, e.g. timer.cancel.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only entries about this namespace.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only entries about this timer, operation, key or secret."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT|DURATION",
            help="Only entries from this instant on, or of this last time, e.g. 1h.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Only entries before this instant.")
    ] = None,
    limit: Annotated[
        int, whole_number(1, MAX_V1_PAGE_TIMERS, help="Maximum number of entries, the newest ones.")
    ] = DEFAULT_PAGE_TIMERS,
    cursor: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Cursor from the previous page; only `--limit` may differ."
        ),
    ] = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the server's data as JSON; with `--follow`, a line per entry."
        ),
    ] = False,
) -> None:
    """Show who did what to which timer, when, from where and with which result.

    The newest entry comes first; with `--follow` it comes last. Needs a key with the role `admin`.
    (`duetime audit` is something else: it checks that the store has every timer.)

    Examples:

    * `duetime audit-log --since 24h`
    * `duetime audit-log --namespace orders --action timer.cancel`
    * `duetime audit-log --follow --json`
    """
    query: dict[str, str | int] = {
        name: value
        for name, value in {
            "actor": actor,
            "action": action,
            "namespace": namespace,
            "target": target,
            "from": None if since is None else _since(since),
            "until": None if until is None else read_moment("--until", until),
            "cursor": cursor,
        }.items()
        if value is not None
    }
    client = V1Client(server, api_key)
    if follow:
        if until is not None or cursor is not None:
            refuse("--follow", "goes on with new entries, so --until and --cursor make no sense")
        AuditFollower(client, PATH, query, limit).run(_print_line if as_json else print_entry_line)
        return
    data = client.request("GET", PATH, query={**query, "limit": limit})
    if as_json:
        print_json(data)
        return
    page = client.read_as(AuditLogPage, data)
    if page.entries:
        print_entries(page.entries)
    print(_note(page))


def _since(text: str) -> str:
    try:
        return format_instant(plus_ms(SystemClock().now(), -parse_duration_ms(text)))
    except ValueError:
        return read_moment("--since", text, or_else=", or a duration such as 24h")


def _print_line(entry: AuditEntry) -> None:
    print(msgspec.json.encode(entry).decode(), flush=True)


def _note(page: AuditLogPage) -> str:
    cursor = page.next_cursor
    count = len(page.entries)
    shown = counted(count, "entry") if count == 1 else f"{count:,} entries"
    more = "" if cursor is None else f"; more with --cursor {shlex.quote(printable(cursor))}"
    return f"{shown}{more}"
