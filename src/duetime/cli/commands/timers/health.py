"""`duetime health` and `duetime endpoints`: the state of a server and of the endpoints it calls."""

from collections.abc import Sequence

import typer
from rich.text import Text

from duetime.cli.client.answers import Endpoint, EndpointList
from duetime.cli.client.platform import PlatformClient
from duetime.cli.client.v1 import V1Client
from duetime.cli.commands.options import ApiKeyOption, JsonOption, ServerOption
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_table
from duetime.cli.output.timer_views import print_health, print_json
from duetime.cli.terminal import ExitCode, console, printable

_STYLES = {"closed": "green", "open": "bold red", "halfOpen": "yellow"}
_STATES = {"closed": "closed", "open": "open", "halfOpen": "half open"}
_COLUMNS = (
    # `--endpoint` of other commands needs the whole origin.
    *("endpoint", "state", Column("under way", extra=4)),
    *(Column("waiting", extra=2), Column("failures in a row", extra=3)),
    Column("last error", Cut.WRAP, least=20, enough=20, extra=1),
)


def health(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """Show the health of a server.

    The exit status is 0 if the server is healthy, 1 if it is not, 3 if it cannot be reached.
    """
    client = PlatformClient(server, api_key=None)
    answer, envelope = client.exchange("GET", "/healthz")
    if as_json:
        print_json(envelope["data"])
    else:
        print_health(printable(str(envelope["message"])), client.url, envelope["data"])
    if not answer.is_success:
        raise typer.Exit(ExitCode.FAILED)


def endpoints(
    server: ServerOption = None, api_key: ApiKeyOption = None, as_json: JsonOption = False
) -> None:
    """Show the endpoints that are being called or failed recently, and their circuit breakers.

    An `open` endpoint keeps failing or hanging: only a few attempts at a time go there until one
    succeeds. Failures that count are no connection, no valid answer in time, 5xx, 408 and
    429, but not 404. Each node has its own view; this is the view of the node that answers.
    """
    client = V1Client(server, api_key)
    data = client.request("GET", "/endpoints")
    if as_json:
        print_json(data)
        return
    answer = client.read_as(EndpointList, data)
    if answer.endpoints:
        print_table(_COLUMNS, _rows(answer.endpoints))
    else:
        console().print("No endpoint is being called, and none failed recently.")


def _rows(shown: Sequence[Endpoint]) -> list[list[Text]]:
    return [
        [
            Text(printable(each.endpoint)),
            Text(_STATES[each.state], style=_STYLES[each.state]),
            Text(f"{each.in_flight:,}"),
            Text(f"{each.waiting:,}"),
            Text(f"{each.consecutive_failures:,}"),
            Text(printable(each.last_error or "")),
        ]
        for each in shown
    ]
