"""`duetime update`: change a pending timer."""

from typing import Annotated, cast

import typer

from duetime.cli.client import TimerClient
from duetime.cli.options import (
    ApiKeyOption,
    AtOption,
    HeaderOption,
    IdArgument,
    InOption,
    JsonOption,
    MetadataOption,
    NoPayloadOption,
    PayloadOption,
    ServerOption,
    default_payload,
    read_headers,
    read_instant,
    read_json,
    refuse_both_payloads,
    timer_path,
)
from duetime.cli.retry_options import (
    RETRY_OPTIONS,
    BackoffMultiplierOption,
    InitialIntervalOption,
    MaxDurationOption,
    MaxIntervalOption,
    MaxRetriesOption,
    read_retry_policy,
)
from duetime.cli.terminal import refuse
from duetime.cli.views import print_json, print_timer
from duetime.domain.instants import Instant, format_instant

CallbackData = dict[str, object]

_CHANGES = (
    *("--at", "--in", "--url", "--payload", "--no-payload", "--header", "--metadata"),
    *RETRY_OPTIONS,
)


def update(
    id: IdArgument,
    at: AtOption = None,
    after: InOption = None,
    url: Annotated[str | None, typer.Option(help="Where the callback is POSTed to.")] = None,
    payload: PayloadOption = None,
    no_payload: NoPayloadOption = False,
    header: HeaderOption = None,
    metadata: MetadataOption = None,
    max_retries: MaxRetriesOption = None,
    initial_interval: InitialIntervalOption = None,
    max_interval: MaxIntervalOption = None,
    backoff_multiplier: BackoffMultiplierOption = None,
    max_duration: MaxDurationOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a pending timer; what is not named stays as it is.

    A `--header` is added to those the timer has, or takes the place of the one of its name.

    Examples:

    * `duetime update ID --in 1h`
    * `duetime update ID --url https://example.com/other --header "Authorization=Bearer abc"`
    * `duetime update ID --max-retries 5`
    """
    path = timer_path(id)
    refuse_both_payloads(payload, no_payload)
    execute_at = read_instant(at, after)
    changes: CallbackData = {}
    if url is not None:
        changes["url"] = url
    if header:
        changes["headers"] = read_headers(header)
    if payload is not None:
        changes["payload"] = read_json("--payload", payload)
    body: dict[str, object] = {}
    if execute_at is not None:
        body["execute_at"] = format_instant(execute_at)
    if metadata is not None:
        body["metadata"] = read_json("--metadata", metadata)
    retry_changes = read_retry_policy(
        max_retries=max_retries,
        initial_interval=initial_interval,
        max_interval=max_interval,
        backoff_multiplier=backoff_multiplier,
        max_duration=max_duration,
    )
    if not (body or changes or no_payload or retry_changes):
        refuse(" / ".join(_CHANGES), "name what to change")
    client = TimerClient(server, api_key)
    # The API replaces a callback or a retry policy as a whole, so what stays is read first.
    timer = cast(dict[str, object], client.request("GET", path))
    callback = _changed_callback(timer, changes, no_payload, execute_at)
    if callback is not None:
        body["callback"] = callback
    if retry_changes:
        body["retry_policy"] = cast(CallbackData, timer["retry_policy"] or {}) | retry_changes
    data = client.request("PUT", path, body=body)
    if as_json:
        print_json(data)
    else:
        print_timer("Timer updated.", data)


def _changed_callback(
    timer: dict[str, object],
    changes: CallbackData,
    no_payload: bool,
    execute_at: Instant | None,
) -> CallbackData | None:
    """The complete new callback, or None if it stays."""
    old = cast(CallbackData, timer["callback_config"])
    made_up = old.get("payload") == {"execute_at": timer["execute_at"]}
    if made_up and execute_at is not None and "payload" not in changes and not no_payload:
        # The payload that `create` made up tells the instant; it follows the new one.
        changes = {**changes, "payload": default_payload(execute_at)}
    if not changes and not no_payload:
        return None
    kept = old
    if "url" in changes and old.get("type") != "http":
        kept = {"type": "http", **{n: old[n] for n in ("headers", "payload") if n in old}}
    new = kept | changes
    if "headers" in changes:
        replaced = cast(dict[str, str], changes["headers"])
        names = {name.lower() for name in replaced}
        kept_headers = cast(dict[str, str], old.get("headers") or {}).items()
        new["headers"] = {n: v for n, v in kept_headers if n.lower() not in names} | replaced
    if no_payload:
        new.pop("payload", None)
    return new
