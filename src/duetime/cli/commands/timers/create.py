"""`duetime create`: create a timer."""

from typing import Annotated

import typer

from duetime.cli.client.field_names import in_v1_names
from duetime.cli.client.platform import PlatformClient
from duetime.cli.client.v1 import V1Client
from duetime.cli.commands.options import (
    ApiKeyOption,
    AtOption,
    BackoffMultiplierOption,
    CallbackTimeoutOption,
    HeaderOption,
    InitialIntervalOption,
    InOption,
    JsonOption,
    MaxDurationOption,
    MaxIntervalOption,
    MaxRetriesOption,
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
    read_retry_policy,
    refuse_both_payloads,
    refuse_v1_options,
)
from duetime.cli.output.timer_views import show_timer
from duetime.cli.terminal import refuse
from duetime.domain.instants import format_instant
from duetime.domain.namespace import DEFAULT_NAMESPACE

_FINISHED = {
    "completed": "; it is completed and will not fire again",
    "failed": "; it has failed and will not fire again",
    "canceled": "; it is canceled and will not fire",
}
"""Words for a timer that the repeated create does not bring back."""


def create(
    url: Annotated[str | None, typer.Option(help="URL that the callback is POSTed to.")] = None,
    nats_topic: Annotated[
        str | None,
        typer.Option(
            metavar="SUBJECT", help="Publish the callback at NATS instead, on this subject."
        ),
    ] = None,
    nats_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Makes the subject SUBJECT.KEY.")
    ] = None,
    ack: Annotated[
        bool, typer.Option("--ack", help="Require that a JetStream stream stores the message.")
    ] = False,
    at: AtOption = None,
    after: InOption = None,
    payload: PayloadOption = None,
    no_payload: NoPayloadOption = False,
    header: HeaderOption = None,
    metadata: MetadataOption = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="Makes the command safe to repeat: no second timer is created."),
    ] = None,
    max_retries: MaxRetriesOption = None,
    initial_interval: InitialIntervalOption = None,
    max_interval: MaxIntervalOption = None,
    backoff_multiplier: BackoffMultiplierOption = None,
    max_duration: MaxDurationOption = None,
    namespace: NamespaceOption = None,
    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="An id of your own; uses the v1 API.")
    ] = None,
    callback_timeout: CallbackTimeoutOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a timer.

    The server adds `--in` to its own clock, and the output shows the instant that came of it. With
    `--id` or `--idempotency-key` the command may be repeated: the duration counts once.

    With `--id` the timer is created through the v1 API. The callback then names the timer and its
    instant, with `"payload": null` unless `--payload` is given, and the endpoint has to answer
    200 with `{"ok": true}`. The namespace's retry policy applies.

    Without `--id` the timer is created through the platform API, and a failed callback is retried
    only if one of the retry options is given. The body is the `--payload`. Without one, a timer
    with `--in` has no body, and a timer with `--at` has `{"execute_at": ...}`, from which the
    receiver can tell how late it is; `--no-payload` leaves that out.

    With `--nats-topic` the callback is a message to the NATS server that the service is set to.

    Examples:

    * `duetime create --id order-17 --url https://example.com/hook --in 1h`
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
    elif not no_payload and id is None and after is None:
        callback["payload"] = default_payload(execute_at)
    body: dict[str, object] = {
        **({"execute_at": format_instant(execute_at)} if after is None else {"execute_in": after}),
        "callback": callback,
    }
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
    client: PlatformClient | V1Client
    if id is None and namespace is None:
        refuse_v1_options(body, "--id")
        client = PlatformClient(server, api_key)
    else:
        if id is None:
            refuse("--id", "is needed with --namespace")
        if nats_topic is not None:
            refuse("--nats-topic", "cannot be used with the v1 API, which calls back over HTTP")
        if idempotency_key is not None:
            refuse("--idempotency-key", "is not needed with the v1 API: repeat the --id instead")
        body = {"namespace": namespace or DEFAULT_NAMESPACE, "id": id, **in_v1_names(body)}
        client = V1Client(server, api_key)
    existence, data = client.create(body)
    headline = _headline(existence, data)
    if not as_json and isinstance(client, PlatformClient):
        data = _with_sent_members(data, callback, retry_policy)
    show_timer(headline, data, as_json=as_json)


def _headline(existence: str, timer: object) -> str:
    if existence == "existing":
        status = timer.get("status") if isinstance(timer, dict) else None
        return f"Timer existed already{_FINISHED.get(str(status), '')}."
    return "Timer created." if existence == "created" else "Timer accepted."


def _with_sent_members(
    timer: object, callback: dict[str, object], retry_policy: dict[str, object]
) -> object:
    """The timer with its destination and its retries, which the platform API does not repeat. They
    hold for an existing timer too: a create that differs from it is refused."""
    if not isinstance(timer, dict):
        return timer
    destination = {n: v for n, v in callback.items() if n not in ("headers", "payload")}
    sent = {"callback_config": destination, "retry_policy": retry_policy or None}
    return {**timer, **{name: value for name, value in sent.items() if name not in timer}}


def _callback(
    url: str | None, nats_topic: str | None, nats_key: str | None, ack: bool
) -> dict[str, object]:
    """The destination; headers and payload are added later."""
    if (url is None) == (nats_topic is None):
        refuse(
            "--url / --nats-topic",
            "one of them is needed" if url is None else "give one of them, not both",
        )
    if url is not None:
        for option, given in (("--nats-key", nats_key is not None), ("--ack", ack)):
            if given:
                refuse(option, "is for callbacks over NATS: give --nats-topic instead of --url")
        return {"type": "http", "url": url}
    callback: dict[str, object] = {"type": "nats", "topic": nats_topic}
    if nats_key is not None:
        callback["key"] = nats_key
    if ack:
        callback["ack"] = True
    return callback
