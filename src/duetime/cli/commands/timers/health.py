"""`duetime health`: the state of a server."""

import typer

from duetime.cli.client.platform import PlatformClient
from duetime.cli.commands.options import JsonOption, ServerOption
from duetime.cli.output.timer_views import print_health, print_json
from duetime.cli.terminal import ExitCode, printable


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
