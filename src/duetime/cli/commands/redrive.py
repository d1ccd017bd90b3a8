"""`duetime redrive`: failed timers, once more."""

import sys
from typing import Annotated

import typer

from duetime.api.v1.types import RedriveAnswer
from duetime.cli.client.v1 import V1Client, refusal
from duetime.cli.options import (
    ApiKeyOption,
    DueAfterOption,
    DueBeforeOption,
    ServerOption,
    read_due_range,
)
from duetime.cli.output.terminal import ExitCode, fail, printable, refuse
from duetime.cli.output.wording import counted
from duetime.domain.namespace import DEFAULT_NAMESPACE

PATIENCE_SECONDS = 3_600.0
"""A redrive of millions is one request that takes its time."""

_CHOICE = "ID / --due-after / --due-before / --error-contains / --all"

Filter = dict[str, object]


def redrive(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Failed timers, one by one.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Their namespace.")
    ] = DEFAULT_NAMESPACE,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    error_contains: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only timers whose last error contains it.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All failed timers of the namespace.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; tell what would be.")
    ] = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Fire failed timers once more: they are pending again, and due at once.

    Name timers by their ids, or choose them by their instants and errors. What is chosen is
    counted first, and you are asked; `--yes` is for scripts. The exit status is 1 if a timer that
    was named could not be redriven.

    Examples:

    * `duetime redrive order-17 order-18 --namespace orders`
    * `duetime redrive --error-contains "HTTP 503" --due-after 2030-01-31T00:00:00Z --dry-run`
    * `duetime redrive --all --yes`
    """
    chosen: Filter = {**read_due_range(due_after, due_before)}
    if error_contains is not None:
        chosen["errorContains"] = error_contains
    if every:
        chosen["all"] = True
    if bool(ids) == bool(chosen):
        refuse(_CHOICE, "give ids or a choice, not both" if ids else "say which timers")
    if chosen and not (yes or dry_run or can_ask()):
        refuse("--yes", "is needed where nobody can be asked")
    client = V1Client(server, api_key)
    if ids:
        _redrive_each(client, namespace, ids, dry_run=dry_run)
    else:
        _redrive_chosen(client, {"namespace": namespace, **chosen}, yes=yes, dry_run=dry_run)


def can_ask() -> bool:
    """Whether there is somebody to answer a question."""
    return sys.stdin.isatty()


def _redrive_each(client: V1Client, namespace: str, ids: list[str], *, dry_run: bool) -> None:
    done = "can be redriven" if dry_run else "redriven"
    refused = 0
    with client.kept_open():
        for id in ids:
            body = {"namespace": namespace, "timerId": id, "dryRun": dry_run}
            answer, document = client.exchange("POST", "/timers/redrive", body=body)
            if answer.is_success:
                print(f"{printable(id)}: {done}")
            else:
                refused += 1
                print(f"{printable(id)}: {refusal(document)}", file=sys.stderr)
    if refused:
        raise typer.Exit(ExitCode.FAILED)


def _redrive_chosen(client: V1Client, chosen: Filter, *, yes: bool, dry_run: bool) -> None:
    matched = _request(client, chosen | {"dryRun": True}).matched
    timers = (
        f"{counted(matched, 'failed timer')} of namespace {printable(repr(chosen['namespace']))}"
    )
    if dry_run or not matched:
        print(f"{timers}: nothing was redriven")
        return
    if not yes and not typer.confirm(f"Redrive {timers}?"):
        fail("nothing was redriven", ExitCode.FAILED)
    print(f"redriven: {counted(_request(client, chosen).redriven, 'timer')}")


def _request(client: V1Client, body: Filter) -> RedriveAnswer:
    document = client.request(
        "POST", "/timers/redrive", body=body, timeout_seconds=PATIENCE_SECONDS
    )
    return client.read_as(RedriveAnswer, document)
