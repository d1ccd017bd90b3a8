"""`duetime endpoints`: whom the server calls, and how that goes."""

from collections.abc import Sequence

from rich.text import Text

from duetime.api.v1.endpoint_types import EndpointAnswer, EndpointListAnswer
from duetime.cli.client.v1 import V1Client
from duetime.cli.options import ApiKeyOption, JsonOption, ServerOption
from duetime.cli.output.layout import print_table
from duetime.cli.output.terminal import console, printable
from duetime.cli.output.views import print_json

_STYLES = {"closed": "green", "open": "bold red", "halfOpen": "yellow"}
_STATES = {"closed": "closed", "open": "open", "halfOpen": "half open"}
_HEADINGS = ["endpoint", "state", "under way", "waiting", "failures in a row", "last error"]


def endpoints(
    server: ServerOption = None, api_key: ApiKeyOption = None, as_json: JsonOption = False
) -> None:
    """Show the endpoints that are being called or were in trouble lately, and their circuit
    breakers.

    An `open` one keeps failing or hanging: only a few attempts at a time go there until one shows
    that it is back. Failures are counted that speak against the endpoint: no connection, no valid
    answer in time, 5xx, 408 and 429, but not 404. Each node has a view of its own; this is the
    view of the one that answers.
    """
    client = V1Client(server, api_key)
    data = client.request("GET", "/endpoints")
    if as_json:
        print_json(data)
        return
    answer = client.read_as(EndpointListAnswer, data)
    if answer.endpoints:
        print_table(_HEADINGS, _rows(answer.endpoints))
    else:
        console().print("No endpoint is being called, and none was in trouble lately.")


def _rows(shown: Sequence[EndpointAnswer]) -> list[list[Text]]:
    return [
        [
            Text(printable(each.endpoint)),
            Text(_STATES[each.state], style=_STYLES[each.state]),
            Text(str(each.in_flight)),
            Text(str(each.waiting)),
            Text(str(each.consecutive_failures)),
            Text(printable(each.last_error or "")),
        ]
        for each in shown
    ]
