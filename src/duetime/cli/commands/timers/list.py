"""`duetime list`: one page of timers."""

import shlex
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, cast

import typer

from duetime.cli.client.answers import NamespaceList
from duetime.cli.client.field_names import TimerData
from duetime.cli.client.platform import PlatformClient
from duetime.cli.client.v1 import Query, V1Client
from duetime.cli.commands.number_options import whole_number
from duetime.cli.commands.options import (
    NOW,
    ApiKeyOption,
    DueAfterOption,
    DueBeforeOption,
    ServerOption,
    TimerJsonOption,
    WithSecretsOption,
    read_due_range,
    read_secrets,
)
from duetime.cli.commands.timers.bulk import AllNamespacesOption
from duetime.cli.output.timer_list import print_timers
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import printable, refuse
from duetime.domain.limits import DEFAULT_PAGE_TIMERS, MAX_PLATFORM_PAGE_TIMERS, MAX_V1_PAGE_TIMERS
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.wording import counted

_BOUNDS = {"dueAfter": "--due-after", "dueBefore": "--due-before"}
_OTHERS = "; --all-namespaces lists the others too"


class StatusName(StrEnum):
    PENDING = "pending"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class SortName(StrEnum):
    CREATED_AT = "created_at"
    EXECUTE_AT = "execute_at"


class Order(StrEnum):
    ASC = "asc"
    DESC = "desc"


@dataclass(slots=True)
class _Page:
    """The server's data, and the words of the last line: how many timers of how many, the
    namespaces they are from if that is known, and how to see more. `unreadable` timers are
    missing."""

    data: object
    timers: list[TimerData]
    counted: str
    covered: str | None
    more: str
    unreadable: int


def list_timers(
    status: Annotated[StatusName | None, typer.Option(help="Only timers with this status.")] = None,
    limit: Annotated[
        int,
        whole_number(
            1,
            MAX_V1_PAGE_TIMERS,
            help=f"Maximum number of timers; more than {MAX_PLATFORM_PAGE_TIMERS} only with "
            "`--namespace` or `--all-namespaces`.",
        ),
    ] = DEFAULT_PAGE_TIMERS,
    offset: Annotated[int, whole_number(0, help="Number of timers to skip.")] = 0,
    sort: Annotated[SortName | None, typer.Option(help="Instant to sort by [created_at].")] = None,
    order: Annotated[Order | None, typer.Option(help="Oldest or newest first [desc].")] = None,
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="List this namespace, by due instant.")
    ] = None,
    all_namespaces: AllNamespacesOption = False,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    cursor: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Cursor from the previous page; only `--limit` may differ."
        ),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="Shorten nothing to fit the terminal.")
    ] = False,
    with_secrets: WithSecretsOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: TimerJsonOption = False,
) -> None:
    """List timers of the namespace `default`, or of the only one that the key is for, the most
    recently created first.

    With `--namespace`, `--due-after`, `--due-before` or `--cursor` the command lists one namespace
    (`default` if not given), the timer that is due first at the top. Long lists then continue with
    `--cursor` instead of `--offset`. With `--all-namespaces` it lists one namespace after the
    other, in the order of their names. The last line says which namespaces are covered.

    Examples:

    * `duetime list --status failed` (`duetime redrive` fires failed timers once more)
    * `duetime list --status pending --sort execute_at --order asc` shows the next due timers
    * `duetime list --namespace orders --due-before 2030-01-31T00:00:00Z`
    * `duetime list --all-namespaces --status failed`
    * `duetime list --all-namespaces --status pending --due-before now` shows the overdue timers
    """
    if all_namespaces and namespace is not None:
        refuse("--namespace / --all-namespaces", "give one of them, not both")
    due_range = read_due_range(due_after, due_before)
    query: dict[str, str | int] = {} if status is None else {"status": status.value}
    query |= read_secrets(with_secrets)
    noun = "timer" if status is None else f"{status.value} timer"
    if all_namespaces or namespace is not None or due_range or cursor is not None:
        if offset or sort is SortName.CREATED_AT:
            refuse(
                "--offset / --sort",
                "a namespace is listed by execute_at and continues with --cursor",
            )
        query |= {**due_range, "order": (order or Order.ASC).value}
        client = V1Client(server, api_key)
        if all_namespaces:
            page = _page_of_all(client, query, limit, cursor, noun)
        else:
            page = _page_of_namespace(
                client, namespace or DEFAULT_NAMESPACE, query, limit, cursor, noun
            )
    else:
        if limit > MAX_PLATFORM_PAGE_TIMERS:
            refuse(
                "--limit",
                f"at most {MAX_PLATFORM_PAGE_TIMERS}, or {MAX_V1_PAGE_TIMERS} with --namespace "
                "or --all-namespaces",
            )
        query |= {"limit": limit, "offset": offset}
        query["sort"] = (sort or SortName.CREATED_AT).value
        query["order"] = (order or Order.DESC).value
        page = _newest_page(PlatformClient(server, api_key), query, noun)
    if NOW in (due_after, due_before):
        # The next page has to be of the same instant.
        bounds = " ".join(f"{_BOUNDS[field]} {instant}" for field, instant in due_range.items())
        page.more = page.more.replace("--cursor", f"{bounds} --cursor", 1)
    if page.unreadable:
        typer.echo(
            f"left out {counted(page.unreadable, 'timer')} that the server cannot read; its log "
            "says why (timer.sealed, timer.unreadable)",
            err=True,
        )
    if as_json:
        print_json(page.data)
        return
    if not page.timers and namespace is None and not all_namespaces:
        page.more = _OTHERS
    of_namespaces = "" if page.covered is None else f" of {page.covered}"
    note = f"{page.counted}{of_namespaces}{page.more}"
    print_timers(page.timers, note, with_namespace=all_namespaces, wide=wide)


def _newest_page(client: PlatformClient, query: Query, noun: str) -> _Page:
    data = cast(TimerData, client.request("GET", "/timers", query=query))
    timers = cast(list[TimerData], data["timers"])
    total, offset = cast(int, data["total"]), cast(int, data["offset"])
    end = offset + len(timers)
    if not data.get("total_is_estimated"):
        # The total counts timers that cannot be read, and the page leaves them out.
        end = max(end, min(total, offset + cast(int, data["limit"])))
    unreadable = end - offset - len(timers)
    about = "about " if data.get("total_is_estimated") else ""
    shown = about + counted(total, noun)
    if len(timers) != total:
        shown = f"{offset + 1 if end > offset else 0:,} to {end:,} of {shown}"
    more = f"; more with --offset {end}" if offset < end < total else ""
    # The answer does not say which namespace is the key's own.
    covered = None if client.has_issued_key else _named(DEFAULT_NAMESPACE)
    return _Page(data, timers, shown, covered, more, unreadable)


def _page_of_namespace(
    client: V1Client, namespace: str, query: Query, limit: int, cursor: str | None, noun: str
) -> _Page:
    reader = _Reader(client, query, limit)
    next_cursor = reader.read(namespace, cursor or "")
    return _Page(
        reader.last_answer,
        reader.timers,
        counted(len(reader.timers), noun),
        _named(namespace),
        _more(next_cursor),
        reader.unreadable,
    )


def _page_of_all(
    client: V1Client, query: Query, limit: int, cursor: str | None, noun: str
) -> _Page:
    """A cursor of all namespaces is a namespace, a slash, and a cursor of that namespace; empty
    is its beginning."""
    start, slash, start_cursor = (cursor or "").rpartition("/")
    if cursor and not slash:
        refuse("--cursor", "is not from a page of --all-namespaces")
    reader = _Reader(client, query, limit)
    next_cursor: str | None = None
    with client.kept_open():
        listed = client.read_as(NamespaceList, client.request("GET", "/namespaces")).namespaces
        for name in sorted(each.name for each in listed if each.name >= start):
            if reader.left == 0:
                next_cursor = f"{name}/"
                break
            rest = reader.read(name, start_cursor if name == start else "")
            if rest is not None:
                next_cursor = f"{name}/{rest}"
                break
    return _Page(
        {"timers": reader.timers, "nextCursor": next_cursor},
        reader.timers,
        counted(len(reader.timers), noun),
        f"all {counted(len(listed), 'namespace')}",
        _more(next_cursor),
        reader.unreadable,
    )


@dataclass(slots=True)
class _Reader:
    """Reads timers of the v1 API up to a limit."""

    client: V1Client
    query: Query
    left: int
    timers: list[TimerData] = field(default_factory=list)
    last_answer: object = None
    unreadable: int = 0

    def read(self, namespace: str, cursor: str) -> str | None:
        """Add the next page of the namespace. Returns the cursor of the page after it."""
        query = {**self.query, "limit": self.left, "namespace": namespace}
        if cursor:
            query["cursor"] = cursor
        answer = cast(TimerData, self.client.request("GET", "/timers", query=query))
        page = cast(list[TimerData], answer["timers"])
        self.last_answer = answer
        self.timers += page
        self.left -= len(page)
        self.unreadable += cast(int, answer.get("unreadable", 0))
        return cast(str | None, answer["nextCursor"])


def _named(namespace: str) -> str:
    return f"namespace {printable(repr(namespace))}"


def _more(cursor: str | None) -> str:
    return "" if cursor is None else f"; more with --cursor {shlex.quote(printable(cursor))}"
