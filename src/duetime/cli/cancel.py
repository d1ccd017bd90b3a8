"""`duetime cancel`: a timer that shall not fire."""

from duetime.cli.client import TimerClient
from duetime.cli.options import ApiKeyOption, IdArgument, JsonOption, ServerOption, timer_path
from duetime.cli.views import print_json, print_timer


def cancel(
    id: IdArgument,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel a pending timer. Once this succeeds it will never fire."""
    data = TimerClient(server, api_key).request("DELETE", timer_path(id))
    if as_json:
        print_json(data)
    elif isinstance(data, dict):
        print_timer("Timer canceled.", data)
    else:
        print("Timer canceled.")
