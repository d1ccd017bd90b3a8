"""`duetime health`: whether a server is up."""

import typer

from duetime.cli.client.platform import TimerClient
from duetime.cli.options import JsonOption, ServerOption
from duetime.cli.output.terminal import ExitCode, printable
from duetime.cli.output.views import print_health, print_json


def health(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """Ask a server how it is. The exit status is 0 if it is up, 1 if not, 3 if it is not there."""
    client = TimerClient(server, api_key=None)
    answer, envelope = client.exchange("GET", "/healthz")
    if as_json:
        print_json(envelope["data"])
    else:
        print_health(printable(str(envelope["message"])), client.url, envelope["data"])
    if not answer.is_success:
        raise typer.Exit(ExitCode.FAILED)
