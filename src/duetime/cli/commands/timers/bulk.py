"""`duetime cancel`, `redrive`, `reschedule` and `run-now`: by ids, or all that match a filter."""

import shlex
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from duetime.cli.client.v1 import V1Client, refusal
from duetime.cli.commands.options import (
    ApiKeyOption,
    DueAfterOption,
    DueBeforeOption,
    JsonOption,
    NamespaceOption,
    QuietOption,
    ServerOption,
    TimerJsonOption,
    read_due_range,
    read_moment,
    read_move,
)
from duetime.cli.commands.timers.followed_operations import Body
from duetime.cli.commands.timers.selected_timers import Action, BulkAction, Selection
from duetime.cli.commands.timers.single_timer import SingleTimer
from duetime.cli.output.timer_views import print_json, show_timer
from duetime.cli.terminal import ExitCode, printable, refuse, require_consent
from duetime.domain.namespace import DEFAULT_NAMESPACE

IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of timers.")]
IdPrefixOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Only timers whose id starts with this text.")
]
EndpointOption = Annotated[
    str | None,
    typer.Option(metavar="ORIGIN|HOST", help="Only timers that call this endpoint over HTTP."),
]
ErrorContainsOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Only timers whose last error contains this text."),
]
MetadataFilterOption = Annotated[
    str | None,
    typer.Option(
        metavar="KEY=VALUE", help="Only timers whose metadata has this member with this value."
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="All timers of the namespace.")]
AllNamespacesOption = Annotated[
    bool, typer.Option("--all-namespaces", help="The timers of every namespace.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; show what would be changed.")
]

_FILTERS = (
    "--due-after / --due-before / --id-prefix / --endpoint / --error-contains / --metadata / --all"
)
_MOVE_ONE = "`duetime update {id} --in DURATION`, or --at INSTANT, moves one timer"
_RUN_ONE = "`duetime update {id} --in 1ms` runs one timer"
_UNFINISHED = "pending or executing timer"


def cancel(
    ids: IdsArgument = None,
    namespace: NamespaceOption = None,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    id_prefix: IdPrefixOption = None,
    endpoint: EndpointOption = None,
    error_contains: ErrorContainsOption = None,
    metadata: MetadataFilterOption = None,
    every: AllOption = False,
    all_namespaces: AllNamespacesOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: TimerJsonOption = False,
) -> None:
    """Cancel pending timers. Once this succeeds, they will never fire.

    Name timers by their ids, or select them by filters. Selected timers are counted first, and you
    are asked to confirm; `--yes` is for scripts. Selected timers that are executing are canceled if
    they become pending again within 15 minutes. The timers stay, as canceled: repeating the command
    succeeds, and repeating the command that created a timer does not bring it back. The exit status
    is 1 if a timer named by its id could not be canceled, or if the operation on a selection could
    not be started or did not complete.

    Examples:

    * `duetime cancel order-17 order-18 --namespace orders`
    * `duetime cancel --namespace orders --due-before 2030-01-31T00:00:00Z`
    * `duetime cancel --endpoint https://old.example.com --all-namespaces --dry-run`
    """
    matching = _filter(due_after, due_before, id_prefix, endpoint, error_contains, metadata)
    _check_selection(ids, matching, every, all_namespaces, yes=yes, dry_run=dry_run)
    if ids:
        if dry_run:
            refuse("--dry-run", "is for timers selected by filters")
        _cancel_each(ids, namespace, server, api_key, as_json=as_json)
        return
    action = Action("cancel", "Cancel", "canceled", _UNFINISHED)
    selection = Selection(matching, every, namespace, all_namespaces)
    BulkAction(V1Client(server, api_key), action, quiet=quiet, as_json=as_json).run(
        selection, {}, yes=yes, dry_run=dry_run
    )


def redrive(
    ids: IdsArgument = None,
    namespace: NamespaceOption = None,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    id_prefix: IdPrefixOption = None,
    endpoint: EndpointOption = None,
    error_contains: ErrorContainsOption = None,
    metadata: MetadataFilterOption = None,
    every: AllOption = False,
    all_namespaces: AllNamespacesOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fire failed timers once more: they become pending again, and due at once.

    Name timers by their ids, or select them by filters. Selected timers are counted first, and you
    are asked to confirm; `--yes` is for scripts. The exit status is 1 if a timer named by its id
    could not be redriven, or if the operation on a selection could not be started or did not
    complete.

    Examples:

    * `duetime redrive order-17 order-18 --namespace orders`
    * `duetime redrive --error-contains "HTTP 503" --due-after 2030-01-31T00:00:00Z --dry-run`
    * `duetime redrive --all --all-namespaces --yes`
    """
    matching = _filter(due_after, due_before, id_prefix, endpoint, error_contains, metadata)
    _check_selection(ids, matching, every, all_namespaces, yes=yes, dry_run=dry_run)
    client = V1Client(server, api_key)
    if ids:
        _redrive_each(client, namespace, ids, dry_run=dry_run, as_json=as_json)
        return
    action = Action("redrive", "Redrive", "redriven", "failed timer")
    selection = Selection(matching, every, namespace, all_namespaces)
    BulkAction(client, action, quiet=quiet, as_json=as_json).run(
        selection, {}, yes=yes, dry_run=dry_run
    )


def reschedule(
    context: typer.Context,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="DURATION", help="Move each timer by this time, e.g. 1h or -15m."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="INSTANT", help="Give all timers this instant."),
    ] = None,
    namespace: NamespaceOption = None,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    id_prefix: IdPrefixOption = None,
    endpoint: EndpointOption = None,
    error_contains: ErrorContainsOption = None,
    metadata: MetadataFilterOption = None,
    every: AllOption = False,
    all_namespaces: AllNamespacesOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move all pending timers that match, by a duration or to an instant.

    The timers are counted first, and you are asked to confirm; `--yes` is for scripts. Timers that
    are executing are moved if they become pending again within 15 minutes. A timer that is moved
    into the past is due at once. `duetime update` moves a single timer.

    Examples:

    * `duetime reschedule --by 1h --namespace orders --due-before 2030-01-31T00:00:00Z`
    * `duetime reschedule --to 2030-02-01T08:00:00Z --endpoint api.example.com`
    """
    matching = _filter(due_after, due_before, id_prefix, endpoint, error_contains, metadata)
    _check_filters_only(context, matching, every, _MOVE_ONE)
    moved = _read_move(by, to)
    require_consent(given=yes or dry_run)
    action = Action("reschedule", "Reschedule", "rescheduled", _UNFINISHED)
    selection = Selection(matching, every, namespace, all_namespaces)
    BulkAction(V1Client(server, api_key), action, quiet=quiet, as_json=as_json).run(
        selection, moved, yes=yes, dry_run=dry_run
    )


def run_now(
    context: typer.Context,
    namespace: NamespaceOption = None,
    due_after: DueAfterOption = None,
    due_before: DueBeforeOption = None,
    id_prefix: IdPrefixOption = None,
    endpoint: EndpointOption = None,
    error_contains: ErrorContainsOption = None,
    metadata: MetadataFilterOption = None,
    every: AllOption = False,
    all_namespaces: AllNamespacesOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make all pending timers that match due at once, those that wait for a retry, too.

    The timers are counted first, and you are asked to confirm; `--yes` is for scripts. Timers that
    are due or executing are left alone. Endpoints are not flooded: the timers wait in their lanes.

    Examples:

    * `duetime run-now --namespace orders --error-contains "HTTP 503"`
    * `duetime run-now --metadata customerId=17 --all-namespaces --dry-run`
    """
    matching = _filter(due_after, due_before, id_prefix, endpoint, error_contains, metadata)
    _check_filters_only(context, matching, every, _RUN_ONE)
    require_consent(given=yes or dry_run)
    action = Action("run-now", "Run", "made due", "pending timer")
    selection = Selection(matching, every, namespace, all_namespaces)
    BulkAction(V1Client(server, api_key), action, quiet=quiet, as_json=as_json).run(
        selection, {}, yes=yes, dry_run=dry_run
    )


def _check_filters_only(context: typer.Context, matching: Body, every: bool, advice: str) -> None:
    """Refuse ids, and a command without a filter. `advice` says what to do with one timer."""
    if context.args:
        one = advice.format(id=shlex.quote(context.args[0]))
        refuse("ID", f"is not for {context.info_name}: {one}")
    if not matching and not every:
        refuse(_FILTERS, f"say which timers; {advice.format(id='ID')}")


def _read_move(by: str | None, to: str | None) -> Body:
    if by is not None and to is not None:
        refuse("--by / --to", "give one of them, not both")
    if by is not None:
        return {"moveBy": read_move("--by", by)}
    if to is None:
        refuse("--by / --to", "give one of them: by how much, or to when")
    return {"executeAt": read_moment("--to", to)}


def _filter(
    due_after: str | None,
    due_before: str | None,
    id_prefix: str | None,
    endpoint: str | None,
    error_contains: str | None,
    metadata: str | None,
) -> Body:
    texts = {"idPrefix": id_prefix, "endpoint": endpoint, "errorContains": error_contains}
    given: Body = {name: text for name, text in texts.items() if text is not None}
    if metadata is not None:
        key, equals, value = metadata.partition("=")
        if not key or not equals:
            refuse("--metadata", "must be KEY=VALUE, such as customerId=17")
        given["metadata"] = {"key": key, "value": value}
    return {**read_due_range(due_after, due_before), **given}


def _check_selection(
    ids: list[str] | None,
    matching: Body,
    every: bool,
    all_namespaces: bool,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    if ids and (matching or every or all_namespaces):
        refuse(f"ID / {_FILTERS}", "give ids or filters, not both")
    if ids:
        return
    if not matching and not every:
        refuse(f"ID / {_FILTERS}", "say which timers")
    require_consent(given=yes or dry_run)


def _cancel_each(
    ids: list[str],
    namespace: str | None,
    server: str | None,
    api_key: str | None,
    *,
    as_json: bool,
) -> None:
    if len(ids) == 1:
        timer = SingleTimer(ids[0], namespace, server=server, api_key=api_key).cancel()
        show_timer(f"Timer {printable(ids[0])} canceled.", timer, as_json=as_json)
        return

    def cancel_one(id: str) -> str | None:
        return SingleTimer(id, namespace, server=server, api_key=api_key).try_cancel()

    _report_each(ids, cancel_one, "canceled", as_json=as_json)


def _redrive_each(
    client: V1Client, namespace: str | None, ids: list[str], *, dry_run: bool, as_json: bool
) -> None:
    def redrive_one(id: str) -> str | None:
        body = {"namespace": namespace or DEFAULT_NAMESPACE, "timerId": id, "dryRun": dry_run}
        answer, document = client.exchange("POST", "/timers/redrive", body=body)
        if answer.is_success:
            return None
        return refusal(document, has_issued_key=client.has_issued_key)

    with client.kept_open():
        done = "can be redriven" if dry_run else "redriven"
        _report_each(ids, redrive_one, done, as_json=as_json)


def _report_each(
    ids: list[str],
    change: Callable[[str], str | None],
    done: str,
    *,
    as_json: bool,
) -> None:
    """Change each timer. `change` answers the reason if it was refused."""
    results: list[Body] = []
    for id in ids:
        reason = change(id)
        results.append({"id": id, "done": reason is None, "error": reason})
        if as_json:
            continue
        if reason is None:
            print(f"{printable(id)}: {done}")
        else:
            print(f"{printable(id)}: {reason}", file=sys.stderr)
    if as_json:
        print_json({"timers": results})
    if not all(result["done"] for result in results):
        raise typer.Exit(ExitCode.FAILED)
