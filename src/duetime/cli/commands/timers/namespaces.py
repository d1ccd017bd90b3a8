"""`duetime namespaces`: list, show, create, change and delete namespaces."""

from typing import Annotated

import typer
from msgspec import UNSET
from msgspec.structs import astuple, replace

from duetime.cli.client.answers import Namespace, NamespaceList, Operation
from duetime.cli.client.field_names import in_v1_names
from duetime.cli.client.v1 import V1Client, path_segment, refusal
from duetime.cli.commands.number_options import whole_number
from duetime.cli.commands.options import (
    ApiKeyOption,
    BackoffMultiplierOption,
    InitialIntervalOption,
    JsonOption,
    MaxDurationOption,
    MaxIntervalOption,
    MaxRetriesOption,
    QuietOption,
    ServerOption,
    read_retry_policy,
    refuse_options_before,
)
from duetime.cli.commands.timers.bulk import YesOption
from duetime.cli.commands.timers.followed_operations import FollowedOperations
from duetime.cli.output.namespace_views import print_namespace, print_namespaces
from duetime.cli.output.operation_views import left_running, operation_line, print_operation
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail, printable, refuse, require_consent
from duetime.domain.instants import parse_duration_ms
from duetime.domain.limits import MAX_SHARDS
from duetime.domain.wording import counted

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the namespace.")]

namespaces = typer.Typer(
    no_args_is_help=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@namespaces.command("list", help="List the namespaces, as `duetime namespaces` does.")
@namespaces.callback(invoke_without_command=True)
def list_namespaces(
    context: typer.Context,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the namespaces, show one, or create, change and delete them.

    Examples:

    * `duetime namespaces`
    * `duetime namespaces show notifications`
    * `duetime namespaces set notifications --shards 64 --retention 7d`
    """
    command = context.invoked_subcommand
    if command is not None:
        refuse_options_before(command, context)
        return
    client = V1Client(server, api_key)
    data = client.request("GET", "/namespaces")
    if as_json:
        print_json(data)
    else:
        print_namespaces(client.read_as(NamespaceList, data).namespaces)


@namespaces.command()
def show(
    name: NameArgument,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one namespace, with the number of its timers by status."""
    client = V1Client(server, api_key)
    data = client.request("GET", _path(name))
    if as_json:
        print_json(data)
    else:
        print_namespace("", client.read_as(Namespace, data))


@namespaces.command("create", hidden=True)
@namespaces.command("set")
def set_namespace(
    name: NameArgument,
    shards: Annotated[
        int | None,
        whole_number(1, MAX_SHARDS, help="Number of shards of a new namespace [16]."),
    ] = None,
    retention: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION|forever|default",
            help="How long finished timers are kept, e.g. 7d.",
        ),
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(metavar="NUMBER|none", help="Callbacks that may be under way at once."),
    ] = None,
    max_payload_bytes: Annotated[
        str | None, typer.Option(metavar="NUMBER|default", help="Largest payload of a timer.")
    ] = None,
    max_pending: Annotated[
        str | None,
        typer.Option(metavar="NUMBER|none", help="Timers that may be pending or executing."),
    ] = None,
    callback_networks: Annotated[
        str | None,
        typer.Option(
            metavar="LIST|default",
            help="Networks and hosts that callbacks may go to; narrows CALLBACK_NETWORKS.",
        ),
    ] = None,
    slo: Annotated[
        str | None,
        typer.Option(
            metavar="OBJECTIVE|none",
            help="Lateness that attempts should have, e.g. '99.9 % within 100ms over 30d'.",
        ),
    ] = None,
    max_retries: MaxRetriesOption = None,
    initial_interval: InitialIntervalOption = None,
    max_interval: MaxIntervalOption = None,
    backoff_multiplier: BackoffMultiplierOption = None,
    max_duration: MaxDurationOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a namespace, or change one. Options that are not given leave their part unchanged.

    The first line says whether it was created, changed or left unchanged.

    The retry options apply to timers of the v1 API that are created without a retry policy.

    Examples:

    * `duetime namespaces set notifications --shards 64`
    * `duetime namespaces set notifications --retention forever --concurrency 100`
    * `duetime namespaces set notifications --max-retries 5 --initial-interval 10s`
    * `duetime namespaces set notifications --callback-networks "*.example.com:443"`
    * `duetime namespaces set notifications --slo "99.9 % within 100ms over 30d"`
    """
    path = _path(name)
    body: dict[str, object] = {}
    if shards is not None:
        body["numShards"] = shards
    if retention is not None:
        body["retention"] = _read_retention(retention)
    if concurrency is not None:
        body["concurrency"] = _read_number("--concurrency", concurrency, "none")
    if max_payload_bytes is not None:
        body["maxPayloadBytes"] = _read_number("--max-payload-bytes", max_payload_bytes, "default")
    if max_pending is not None:
        body["maxPending"] = _read_number("--max-pending", max_pending, "none")
    if callback_networks is not None:
        body["callbackNetworks"] = _read_networks(callback_networks)
    if slo is not None:
        body["slo"] = None if slo == "none" else slo
    retry_policy = read_retry_policy(
        max_retries=max_retries,
        initial_interval=initial_interval,
        max_interval=max_interval,
        backoff_multiplier=backoff_multiplier,
        max_duration=max_duration,
    )
    if retry_policy:
        body |= in_v1_names({"retry_policy": retry_policy})
    client = V1Client(server, api_key)
    with client.kept_open():
        before, found = client.exchange("GET", path)
        if before.status_code != 404 and not before.is_success:
            fail(refusal(found), ExitCode.FAILED)
        data = client.request("PUT", path, body=body)
    if as_json:
        print_json(data)
    else:
        namespace = client.read_as(Namespace, data)
        if before.status_code == 404:
            outcome = "created"
        else:
            existing = client.read_as(Namespace, found)
            outcome = "unchanged" if _options(existing) == _options(namespace) else "changed"
        print_namespace(f"Namespace {outcome}.", namespace)


@namespaces.command()
def delete(
    name: NameArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Forget pending timers too; they never fire.")
    ] = False,
    yes: YesOption = False,
    quiet: QuietOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a namespace and the timers in it.

    The server refuses while timers are pending or executing, unless you say `--force`. The command
    waits for the end of the deletion, about ten seconds at least on PostgreSQL. The server goes on
    without it.
    """
    path = _path(name)
    client = V1Client(server, api_key)
    counts = client.read_as(Namespace, client.request("GET", path)).counts
    require_consent(given=yes)
    if not yes:
        timers = "its timers" if counts is UNSET else counted(sum(astuple(counts)), "timer")
        question = f"Delete namespace {printable(repr(name))} with {timers}"
        if force and counts is not UNSET and counts.pending:
            question += f", {counts.pending:,} of them pending, which will never fire"
        if not typer.confirm(f"{question}?"):
            fail("nothing was deleted", ExitCode.FAILED)
    query = {"force": "true"} if force else None
    with client.kept_open():
        started = client.read_as(Operation, client.request("DELETE", path, query=query))
        operations = FollowedOperations(client, quiet=quiet or as_json)
        operations.running.append(started)
        try:
            operations.follow()
        except KeyboardInterrupt:
            fail(left_running([started], cause=None), ExitCode.FAILED)
        except typer.Exit as failure:
            fail(left_running([started], cause=failure.exit_code), failure.exit_code)
        (ended,) = operations.ended
        if as_json:
            print_json(client.request("GET", f"/operations/{ended.id}"))
        elif ended.status == "completed":
            print(f"Namespace deleted, with {counted(ended.changed, 'timer')}.")
        else:
            print_operation(ended)
    if ended.status != "completed":
        fail(operation_line(ended), ExitCode.FAILED)


def _options(namespace: Namespace) -> Namespace:
    return replace(namespace, counts=UNSET, slo_status=None)


def _path(name: str) -> str:
    return f"/namespaces/{path_segment('NAME', name)}"


def _read_retention(text: str) -> str | None:
    if text == "default":
        return None
    if text == "forever":
        return "0s"
    try:
        parse_duration_ms(text)
    except ValueError:
        refuse("--retention", 'must be a duration such as "7d", or forever, or default')
    return text


def _read_networks(text: str) -> str | None:
    if text.strip().lower() == "none":
        # It may mean that nothing is allowed, or that nothing is narrowed.
        refuse("--callback-networks", "must be a list; default removes the namespace's own list")
    return None if text == "default" else text


def _read_number(option: str, text: str, for_none: str) -> int | None:
    if text == for_none:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        refuse(option, f"must be a whole number or {for_none}")
    return int(text)
