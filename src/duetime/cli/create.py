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
    PayloadOption,
    ServerOption,
    default_payload,
    read_duration,
    read_headers,
    read_instant,
    read_json,
)
from duetime.cli.terminal import refuse
from duetime.cli.views import print_json, print_timer
from duetime.domain.instants import format_instant


def create(
    url: Annotated[str, typer.Option(help="Where the callback is POSTed to.")],
    at: AtOption = None,
    after: InOption = None,
    payload: PayloadOption = None,
    header: HeaderOption = None,
    metadata: MetadataOption = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Repeating it with the same timer creates no second one.")
    ] = None,
    max_retries: Annotated[
        int | None, typer.Option(min=0, help="Retry a failed callback this often.")
    ] = None,
    initial_interval: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Wait before the first retry; it doubles."),
    ] = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a timer.

    Without `--payload` the callback carries `{"execute_at": ...}`, so that the receiver can tell
    how late it is; `--payload null` sends no body.

    Examples:

    * `duetime create --url http://127.0.0.1:9000/hello --in 10s`
    * `duetime create --url https://example.com/hook --at 2030-01-31T12:00:00Z --payload @body.json`
    * `duetime create --url http://127.0.0.1:9000 --in 1h30m --max-retries 5 --initial-interval 1s`
    """
    execute_at = read_instant(at, after)
    if execute_at is None:
        refuse("--at / --in", "one of them is needed")
    callback: dict[str, object] = {"type": "http", "url": url}
    if header:
        callback["headers"] = read_headers(header)
    callback["payload"] = (
        default_payload(execute_at) if payload is None else read_json("--payload", payload)
    )
    body: dict[str, object] = {"execute_at": format_instant(execute_at), "callback": callback}
    if metadata is not None:
        body["metadata"] = read_json("--metadata", metadata)
    if idempotency_key is not None:
        body["idempotency_key"] = idempotency_key
    retry_policy = _retry_policy(max_retries, initial_interval)
    if retry_policy:
        body["retry_policy"] = retry_policy
    data = TimerClient(server, api_key).request("POST", "/timers", body=body)
    if as_json:
        print_json(data)
    else:
        print_timer("Timer created.", data)


def _retry_policy(max_retries: int | None, initial_interval: str | None) -> dict[str, object]:
    policy: dict[str, object] = {}
    if max_retries is not None:
        policy["max_retries"] = max_retries
    if initial_interval is not None:
        policy["initial_interval"] = read_duration("--initial-interval", initial_interval)
    return policy
