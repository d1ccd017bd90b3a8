"""`duetime redrive`: fire failed timers once more."""

import sys
from typing import Annotated

import typer

from duetime.cli.client.answers import RedriveSummary
from duetime.cli.client.v1 import V1Client, refusal
from duetime.cli.commands.options import (
    ApiKeyOption,
    DueAfterOption,
    DueBeforeOption,
    ServerOption,
    read_due_range,
)
from duetime.cli.output.wording import counted
from duetime.cli.terminal import ExitCode, fail, printable, refuse
from duetime.domain.namespace import DEFAULT_NAMESPACE

PATIENCE_SECONDS = 3_600.0
"""Timeout of a redrive, which is a single request even for millions of timers."""

_SELECTION = "ID / --due-after / --due-before / --error-contains / --all"

Filter = dict[str, object]


def redrive(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of failed timers.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace of the timers.")
    ] = DEFAULT_NAMESPACE,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    error_contains: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only timers whose last error contains this text."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All failed timers of the namespace.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show what would be redriven.")
    ] = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Fire failed timers once more: they become pending again, and due at once.

    Name timers by their ids, or select them by their instants and errors. Selected timers are
    counted first, and you are asked to confirm; `--yes` is for scripts. The exit status is 1 if a
    timer named by its id could not be redriven.

    Examples:

    * `duetime redrive order-17 order-18 --namespace orders`
    * `duetime redrive --error-contains "HTTP 503" --due-after 2030-01-31T00:00:00Z --dry-run`
    * `duetime redrive --all --yes`
    """
    selected: Filter = {**read_due_range(due_after, due_before)}
    if error_contains is not None:
        selected["errorContains"] = error_contains
    if every:
        selected["all"] = True
    if bool(ids) == bool(selected):
        refuse(
            _SELECTION, "give ids or filters, not both" if ids else "say which timers to redrive"
        )
    if selected and not (yes or dry_run or can_ask()):
        refuse("--yes", "is needed because there is no terminal to ask on")
    client = V1Client(server, api_key)
    if ids:
        _redrive_each(client, namespace, ids, dry_run=dry_run)
    else:
        _redrive_selected(client, {"namespace": namespace, **selected}, yes=yes, dry_run=dry_run)


def can_ask() -> bool:
    """Whether standard input is a terminal, on which a person can answer."""
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


def _redrive_selected(client: V1Client, selected: Filter, *, yes: bool, dry_run: bool) -> None:
    matched = _request(client, selected | {"dryRun": True}).matched
    timers = (
        f"{counted(matched, 'failed timer')} of namespace {printable(repr(selected['namespace']))}"
    )
    if dry_run or not matched:
        print(f"{timers}: nothing was redriven")
        return
    if not yes and not typer.confirm(f"Redrive {timers}?"):
        fail("nothing was redriven", ExitCode.FAILED)
    print(f"redriven: {counted(_request(client, selected).redriven, 'timer')}")


def _request(client: V1Client, body: Filter) -> RedriveSummary:
    document = client.request(
        "POST", "/timers/redrive", body=body, timeout_seconds=PATIENCE_SECONDS
    )
    return client.read_as(RedriveSummary, document)
