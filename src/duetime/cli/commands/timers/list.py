"""`duetime list`: one page of timers."""

from enum import StrEnum
from typing import Annotated, cast

import typer

from duetime.cli.client.field_names import TimerData
from duetime.cli.client.platform import PlatformClient
from duetime.cli.client.v1 import V1Client
from duetime.cli.commands.options import (
    ApiKeyOption,
    DueAfterOption,
    DueBeforeOption,
    JsonOption,
    ServerOption,
    read_due_range,
)
from duetime.cli.output.timer_views import print_json, print_timers, print_v1_timers
from duetime.cli.terminal import refuse
from duetime.domain.limits import DEFAULT_PAGE_TIMERS, MAX_PLATFORM_PAGE_TIMERS, MAX_V1_PAGE_TIMERS
from duetime.domain.namespace import DEFAULT_NAMESPACE


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


def list_timers(
    status: Annotated[StatusName | None, typer.Option(help="Only timers with this status.")] = None,
    limit: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_V1_PAGE_TIMERS,
            help=f"Maximum number of timers; more than {MAX_PLATFORM_PAGE_TIMERS} only with "
            "`--namespace`.",
        ),
    ] = DEFAULT_PAGE_TIMERS,
    offset: Annotated[int, typer.Option(min=0, help="Number of timers to skip.")] = 0,
    sort: Annotated[SortName | None, typer.Option(help="Instant to sort by [created_at].")] = None,
    order: Annotated[Order | None, typer.Option(help="Oldest or newest first [desc].")] = None,
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="List this namespace, by due instant.")
    ] = None,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    cursor: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Cursor from the previous page; only `--limit` may differ."
        ),
    ] = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List timers, the most recently created first.

    With `--namespace`, `--due-after`, `--due-before` or `--cursor` the command lists one namespace
    (`default` if not given), the timer that is due first at the top. Long lists then continue with
    `--cursor` instead of `--offset`.

    Examples:

    * `duetime list --status failed` (`duetime redrive` fires failed timers once more)
    * `duetime list --status pending --sort execute_at --order asc` shows the next due timers
    * `duetime list --namespace orders --due-before 2030-01-31T00:00:00Z`
    """
    query: dict[str, str | int] = {"limit": limit}
    if status is not None:
        query["status"] = status.value
    due_range = read_due_range(due_after, due_before)
    if namespace is not None or due_range or cursor is not None:
        if offset or sort is SortName.CREATED_AT:
            refuse(
                "--offset / --sort",
                "a namespace is listed by execute_at and continues with --cursor",
            )
        query |= {"namespace": namespace or DEFAULT_NAMESPACE, **due_range}
        query["order"] = (order or Order.ASC).value
        if cursor is not None:
            query["cursor"] = cursor
        client: PlatformClient | V1Client = V1Client(server, api_key)
    else:
        if limit > MAX_PLATFORM_PAGE_TIMERS:
            refuse(
                "--limit",
                f"at most {MAX_PLATFORM_PAGE_TIMERS}, or {MAX_V1_PAGE_TIMERS} with --namespace",
            )
        query["offset"] = offset
        query["sort"] = (sort or SortName.CREATED_AT).value
        query["order"] = (order or Order.DESC).value
        client = PlatformClient(server, api_key)
    data = cast(TimerData, client.request("GET", "/timers", query=query))
    timers = cast(list[TimerData], data["timers"])
    if as_json:
        print_json(data)
    elif "nextCursor" in data:
        print_v1_timers(timers, data["nextCursor"])
    else:
        print_timers(timers, data["total"], data["offset"])
