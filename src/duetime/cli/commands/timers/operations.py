"""`duetime operations`: list, show and abort bulk operations."""

from typing import Annotated

import typer

from duetime.cli.client.answers import Operation, OperationList
from duetime.cli.client.v1 import V1Client, path_segment
from duetime.cli.commands.options import (
    ApiKeyOption,
    JsonOption,
    ServerOption,
    refuse_options_before,
)
from duetime.cli.output.operation_views import print_operation, print_operations
from duetime.cli.output.timer_views import print_json

OperationArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the operation.")]

operations = typer.Typer(
    no_args_is_help=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@operations.command("list", help="List the newest operations, as `duetime operations` does.")
@operations.callback(invoke_without_command=True)
def list_operations(
    context: typer.Context,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the newest bulk operations, show one, or abort it.

    `duetime cancel`, `redrive`, `reschedule`, `run-now` and `namespaces delete` start them.

    Examples:

    * `duetime operations`
    * `duetime operations abort 01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c12`
    """
    if context.invoked_subcommand is not None:
        refuse_options_before(context.invoked_subcommand, context)
        return
    client = V1Client(server, api_key)
    data = client.request("GET", "/operations")
    if as_json:
        print_json(data)
    else:
        print_operations(client.read_as(OperationList, data).operations)


@operations.command()
def show(
    id: OperationArgument,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one operation and its progress."""
    _show("GET", id, server, api_key, as_json=as_json)


@operations.command()
def abort(
    id: OperationArgument,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a running operation. Timers that were changed stay changed."""
    _show("DELETE", id, server, api_key, as_json=as_json)


def _show(method: str, id: str, server: str | None, api_key: str | None, *, as_json: bool) -> None:
    client = V1Client(server, api_key)
    data = client.request(method, f"/operations/{path_segment('ID', id)}")
    if as_json:
        print_json(data)
    else:
        print_operation(client.read_as(Operation, data))
