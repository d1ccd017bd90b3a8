"""`duetime create`: register a timer."""

from typing import Annotated

import typer

from duetime.cli.client.platform import TimerClient
from duetime.cli.client.v1 import V1Client
from duetime.cli.client.v1_timer_data import in_v1_names
from duetime.cli.options import (
    ApiKeyOption,
    AtOption,
    CallbackTimeoutOption,
    HeaderOption,
    InOption,
    JsonOption,
    MetadataOption,
    NamespaceOption,
    NoPayloadOption,
    PayloadOption,
    ServerOption,
    default_payload,
    read_duration,
    read_headers,
    read_instant,
    read_json,
    refuse_both_payloads,
    refuse_members_of_v1,
)
from duetime.cli.output.terminal import refuse
from duetime.cli.output.views import show_timer
from duetime.cli.retry_options import (
    BackoffMultiplierOption,
    InitialIntervalOption,
    MaxDurationOption,
    MaxIntervalOption,
    MaxRetriesOption,
    read_retry_policy,
)
from duetime.domain.instants import format_instant
from duetime.domain.namespace import DEFAULT_NAMESPACE

_HEADLINES = {"created": "Timer created.", "existing": "Timer existed already."}


def create(
    url: Annotated[str | None, typer.Option(help="Where the callback is POSTed to.")] = None,
    nats_topic: Annotated[
        str | None,
        typer.Option(metavar="SUBJECT", help="Publish at NATS instead, on this subject."),
    ] = None,
    nats_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The subject is SUBJECT.KEY.")
    ] = None,
    ack: Annotated[
        bool, typer.Option("--ack", help="A JetStream stream must have stored the message.")
    ] = False,
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
    namespace: NamespaceOption = None,
    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="An id of your own, for the v1 API.")
    ] = None,
    callback_timeout: CallbackTimeoutOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a timer.

    Without `--payload` the callback carries `{"execute_at": ...}`, so that the receiver can tell
    how late it is; with `--no-payload` it has no body. A failed callback is tried again if one
    of the retry options is given.

    With `--id` the timer is created by the v1 API: the callback says which timer it is and for
    which instant, with `"payload": null` if there is no `--payload`; the endpoint has to answer
    200 with `{"ok": true}`. The namespace's retry policy applies, and the same command again
    creates no second timer. With `--in` it asks for another instant each time, which is refused:
    use `--at` to repeat it.

    With `--nats-topic` the callback is a message at the NATS server that the service is set to.

    Examples:

    * `duetime create --url http://127.0.0.1:9000/hello --in 10s`
    * `duetime create --url https://example.com/hook --at 2030-01-31T12:00:00Z --payload @body.json`
    * `duetime create --url http://127.0.0.1:9000 --in 1h30m --max-retries 5 --initial-interval 1s`
    * `duetime create --nats-topic events.timer --nats-key user-7 --in 10s --ack`
    * `duetime create --namespace orders --id order-17 --url https://example.com/hook --in 1h`
    """
    refuse_both_payloads(payload, no_payload)
    callback = _callback(url, nats_topic, nats_key, ack)
    execute_at = read_instant(at, after)
    if execute_at is None:
        refuse("--at / --in", "one of them is needed")
    if header:
        callback["headers"] = read_headers(header)
    if payload is not None:
        callback["payload"] = read_json("--payload", payload)
    elif not no_payload and id is None:
        callback["payload"] = default_payload(execute_at)
    body: dict[str, object] = {"execute_at": format_instant(execute_at), "callback": callback}
    if metadata is not None:
        body["metadata"] = read_json("--metadata", metadata)
    if idempotency_key is not None:
        body["idempotency_key"] = idempotency_key
    if callback_timeout is not None:
        body["callback_timeout"] = read_duration("--callback-timeout", callback_timeout)
    retry_policy = read_retry_policy(
        max_retries=max_retries,
        initial_interval=initial_interval,
        max_interval=max_interval,
        backoff_multiplier=backoff_multiplier,
        max_duration=max_duration,
    )
    if retry_policy:
        body["retry_policy"] = retry_policy
    client: TimerClient | V1Client
    if id is None and namespace in (None, DEFAULT_NAMESPACE):
        refuse_members_of_v1(body)
        client = TimerClient(server, api_key)
    else:
        if id is None:
            refuse("--id", "is needed with --namespace")
        if nats_topic is not None:
            refuse("--nats-topic", "is not for timers of the v1 API, which calls back over HTTP")
        if idempotency_key is not None:
            problem = "is not for timers of the v1 API, whose ids tell them apart"
            refuse("--idempotency-key", problem)
        body = {"namespace": namespace or DEFAULT_NAMESPACE, "id": id, **in_v1_names(body)}
        client = V1Client(server, api_key)
    existence, data = client.create(body)
    show_timer(_HEADLINES.get(existence, "Timer accepted."), data, as_json=as_json)


def _callback(
    url: str | None, nats_topic: str | None, nats_key: str | None, ack: bool
) -> dict[str, object]:
    """Where to; what it carries is added later."""
    if (url is None) == (nats_topic is None):
        refuse("--url / --nats-topic", "one of them is needed" if url is None else "give one")
    if url is not None:
        for option, given in (("--nats-key", nats_key is not None), ("--ack", ack)):
            if given:
                refuse(option, "is for callbacks at NATS: give --nats-topic instead of --url")
        return {"type": "http", "url": url}
    callback: dict[str, object] = {"type": "nats", "topic": nats_topic}
    if nats_key is not None:
        callback["key"] = nats_key
    if ack:
        callback["ack"] = True
    return callback
