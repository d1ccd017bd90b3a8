"""`duetime get`: everything about one timer."""

from duetime.cli.client import TimerClient
from duetime.cli.options import ApiKeyOption, IdArgument, JsonOption, ServerOption, timer_path
from duetime.cli.views import print_json, print_timer


def get(
    id: IdArgument,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one timer with its callback, status, last error and latest attempts."""
    data = TimerClient(server, api_key).request("GET", timer_path(id))
    if as_json:
        print_json(data)
    else:
        print_timer("", data)
