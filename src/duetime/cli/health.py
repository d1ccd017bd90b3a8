"""`duetime health`: whether a server is up."""

import typer

from duetime.cli.client import TimerClient
from duetime.cli.options import JsonOption, ServerOption
from duetime.cli.terminal import ExitCode, printable
from duetime.cli.views import print_json, print_timer


def health(server: ServerOption = None, as_json: JsonOption = False) -> None:
    """Ask a server how it is. The exit status is 0 if it is up, 1 if not, 3 if it is not there."""
    answer, envelope = TimerClient(server, api_key=None).exchange("GET", "/healthz")
    if as_json:
        print_json(envelope["data"])
    else:
        print_timer(printable(str(envelope["message"])), envelope["data"] or {})
    if not answer.is_success:
        raise typer.Exit(ExitCode.FAILED)
