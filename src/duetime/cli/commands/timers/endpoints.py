"""`duetime endpoints`: list, pause and resume the endpoints of callbacks."""

from typing import Annotated

import typer

from duetime.cli.client.answers import EndpointList, Pause
from duetime.cli.client.v1 import V1Client
from duetime.cli.commands.options import (
    ApiKeyOption,
    JsonOption,
    ServerOption,
    refuse_options_before,
)
from duetime.cli.output.endpoint_views import print_endpoints, print_pause
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import printable

EndpointArgument = Annotated[
    str,
    typer.Argument(
        metavar="ENDPOINT",
        help="Origin such as https://api.example.com, or a host (by https).",
    ),
]

endpoints = typer.Typer(
    no_args_is_help=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@endpoints.command("list", help="List the endpoints, as `duetime endpoints` does.")
@endpoints.callback(invoke_without_command=True)
def list_endpoints(
    context: typer.Context,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the endpoints of callbacks, pause one, or resume it.

    An `open` endpoint keeps failing or hanging: only a few attempts at a time go there until one
    succeeds. Failures that count are no connection, no valid answer in time, 5xx, 408 and
    429, but not 404. Nothing at all goes to a `paused` endpoint. The figures are those of the last
    15 minutes. Each node has its own view; this is the view of the node that answers.

    Examples:

    * `duetime endpoints`
    * `duetime endpoints pause https://api.example.com --reason "deploy of 4.2"`
    * `duetime endpoints resume https://api.example.com`
    """
    if context.invoked_subcommand is not None:
        refuse_options_before(context.invoked_subcommand, context)
        return
    client = V1Client(server, api_key)
    data = client.request("GET", "/endpoints")
    if as_json:
        print_json(data)
    else:
        print_endpoints(client.read_as(EndpointList, data).endpoints)


@endpoints.command()
def pause(
    endpoint: EndpointArgument,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Words for others, shown with the pause.")
    ] = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send nothing to an endpoint until it is resumed, from any node.

    Attempts under way finish. Timers that fall due wait as pending ones: none is lost, and none
    fails. The pause outlives restarts. It takes an admin key for all namespaces.
    """
    body = {"endpoint": endpoint} | ({} if reason is None else {"reason": reason})
    client = V1Client(server, api_key)
    data = client.request("POST", "/endpoints/pause", body=body)
    if as_json:
        print_json(data)
    else:
        print_pause(client.read_as(Pause, data))


@endpoints.command()
def resume(
    endpoint: EndpointArgument, server: ServerOption = None, api_key: ApiKeyOption = None
) -> None:
    """Send to a paused endpoint again. Timers that wait for it go out at once."""
    V1Client(server, api_key).request("POST", "/endpoints/resume", body={"endpoint": endpoint})
    print(f"{printable(endpoint)} resumed.")
