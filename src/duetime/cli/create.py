"""`duetime create`: register a timer."""

from typing import Annotated

import typer

from duetime.cli.client import TimerClient
from duetime.cli.options import (
    ApiKeyOption,
    AtOption,
    HeaderOption,
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
)
from duetime.cli.retry_options import (
    BackoffMultiplierOption,
    InitialIntervalOption,
    MaxDurationOption,
    MaxIntervalOption,
    MaxRetriesOption,
    read_retry_policy,
)
from duetime.cli.terminal import refuse
from duetime.cli.views import print_json, print_timer
from duetime.domain.instants import format_instant


def create(
    url: Annotated[str, typer.Option(help="Where the callback is POSTed to.")],
    at: AtOption = None,
    after: InOption = None,
    payload: PayloadOption = None,
    no_payload: NoPayloadOption = False,
    header: HeaderOption = None,
    metadata: MetadataOption = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Repeating it with the same timer creates no second one.")
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
    """Create a timer.

    Without `--payload` the callback carries `{"execute_at": ...}`, so that the receiver can tell
    how late it is; with `--no-payload` it has no body. A failed callback is tried again if one
    of the retry options is given.

    Examples:

    * `duetime create --url http://127.0.0.1:9000/hello --in 10s`
    * `duetime create --url https://example.com/hook --at 2030-01-31T12:00:00Z --payload @body.json`
    * `duetime create --url http://127.0.0.1:9000 --in 1h30m --max-retries 5 --initial-interval 1s`
    """
    refuse_both_payloads(payload, no_payload)
    execute_at = read_instant(at, after)
    if execute_at is None:
        refuse("--at / --in", "one of them is needed")
    callback: dict[str, object] = {"type": "http", "url": url}
    if header:
        callback["headers"] = read_headers(header)
    if payload is not None:
        callback["payload"] = read_json("--payload", payload)
    elif not no_payload:
        callback["payload"] = default_payload(execute_at)
    body: dict[str, object] = {"execute_at": format_instant(execute_at), "callback": callback}
    if metadata is not None:
        body["metadata"] = read_json("--metadata", metadata)
    if idempotency_key is not None:
        body["idempotency_key"] = idempotency_key
    retry_policy = read_retry_policy(
        max_retries=max_retries,
        initial_interval=initial_interval,
        max_interval=max_interval,
        backoff_multiplier=backoff_multiplier,
        max_duration=max_duration,
    )
    if retry_policy:
        body["retry_policy"] = retry_policy
    data = TimerClient(server, api_key).request("POST", "/timers", body=body)
    if as_json:
        print_json(data)
    else:
        print_timer("Timer created.", data)
