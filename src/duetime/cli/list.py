"""`duetime list`: pages of timers."""

from enum import StrEnum
from typing import Annotated, cast

import typer

from duetime.cli.client import TimerClient
from duetime.cli.options import ApiKeyOption, JsonOption, ServerOption
from duetime.cli.views import TimerData, print_json, print_timers


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
    status: Annotated[StatusName | None, typer.Option(help="Only timers of this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 50,
    offset: Annotated[int, typer.Option(min=0, help="Skip so many.")] = 0,
    sort: Annotated[SortName, typer.Option(help="By which instant.")] = SortName.CREATED_AT,
    order: Annotated[Order, typer.Option(help="Oldest or newest first.")] = Order.DESC,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List timers, the most recently created first.

    Examples:

    * `duetime list --status failed`
    * `duetime list --status pending --sort execute_at --order asc` shows what is due next
    """
    query: dict[str, str | int] = {
        "limit": limit,
        "offset": offset,
        "sort": sort.value,
        "order": order.value,
    }
    if status is not None:
        query["status"] = status.value
    data = cast(TimerData, TimerClient(server, api_key).request("GET", "/timers", query=query))
    if as_json:
        print_json(data)
    else:
        print_timers(cast(list[TimerData], data["timers"]), data["total"], data["offset"])
