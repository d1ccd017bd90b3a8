"""`duetime get` and `update`: one timer, by its id."""

import re
from typing import Annotated, cast

import msgspec
import typer

from duetime.cli.client.field_names import TimerData, in_platform_names, in_v1_names
from duetime.cli.client.platform import PlatformClient
from duetime.cli.client.v1 import Query, V1Client, path_segment, refusal
from duetime.cli.commands.options import (
    RETRY_OPTIONS,
    ApiKeyOption,
    AtOption,
    BackoffMultiplierOption,
    CallbackTimeoutOption,
    HeaderOption,
    IdArgument,
    InitialIntervalOption,
    InOption,
    MaxDurationOption,
    MaxIntervalOption,
    MaxRetriesOption,
    NamespaceOption,
    NoPayloadOption,
    PayloadOption,
    ServerOption,
    TimerJsonOption,
    WithSecretsOption,
    default_payload,
    read_duration,
    read_headers,
    read_instant,
    read_json,
    read_retry_policy,
    read_secrets,
    refuse_both_payloads,
    refuse_v1_options,
)
from duetime.cli.output.timer_views import show_timer
from duetime.cli.terminal import ExitCode, fail, printable, refuse
from duetime.domain.instants import format_instant
from duetime.domain.namespace import DEFAULT_NAMESPACE

CallbackData = dict[str, object]

ChangedMetadataOption = Annotated[
    str | None,
    typer.Option(
        metavar="JSON|@FILE|-",
        help="Stored with the timer, not sent; for timers without an id of your own.",
    ),
]

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SECOND_NAMES = ("max_attempts", "max_attempts_duration")
_CHANGES = (
    *("--at", "--in", "--url", "--payload", "--no-payload", "--header", "--metadata"),
    "--callback-timeout",
    *RETRY_OPTIONS,
)


def get(
    id: IdArgument,
    namespace: NamespaceOption = None,
    with_secrets: WithSecretsOption = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: TimerJsonOption = False,
) -> None:
    """Show one timer with its callback, status, last error and latest attempts.

    Secrets, such as the value of the header `Authorization`, are shown as `[redacted]`.
    """
    timer = SingleTimer(id, namespace, server=server, api_key=api_key)
    data = timer.request("GET", query=read_secrets(with_secrets))
    show_timer("", data, as_json=as_json)


def update(
    id: IdArgument,
    at: AtOption = None,
    after: InOption = None,
    url: Annotated[str | None, typer.Option(help="URL that the callback is POSTed to.")] = None,
    payload: PayloadOption = None,
    no_payload: NoPayloadOption = False,
    header: HeaderOption = None,
    metadata: ChangedMetadataOption = None,
    max_retries: MaxRetriesOption = None,
    initial_interval: InitialIntervalOption = None,
    max_interval: MaxIntervalOption = None,
    backoff_multiplier: BackoffMultiplierOption = None,
    max_duration: MaxDurationOption = None,
    callback_timeout: CallbackTimeoutOption = None,
    namespace: NamespaceOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: TimerJsonOption = False,
) -> None:
    """Change a pending timer. Options that are not given leave their part of it unchanged.

    A `--header` is added to the timer's headers, or replaces the one with the same name. Secrets
    that are shown as `[redacted]` stay as they are.

    Examples:

    * `duetime update ID --in 1h`
    * `duetime update ID --url https://example.com/other --header "Authorization=Bearer abc"`
    * `duetime update ID --max-retries 5`
    """
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
    if metadata is not None:
        body["metadata"] = read_json("--metadata", metadata)
    if callback_timeout is not None:
        body["callback_timeout"] = read_duration("--callback-timeout", callback_timeout)
    retry_changes = read_retry_policy(
        max_retries=max_retries,
        initial_interval=initial_interval,
        max_interval=max_interval,
        backoff_multiplier=backoff_multiplier,
        max_duration=max_duration,
    )
    if not (body or changes or no_payload or retry_changes or execute_at is not None):
        refuse(" / ".join(_CHANGES), "give at least one of them")
    timer = SingleTimer(id, namespace, server=server, api_key=api_key)
    if not timer.is_v1:
        refuse_v1_options(body, "--namespace")
    elif metadata is not None:
        refuse("--metadata", "cannot be changed through the v1 API")
    # The platform API replaces a callback or retry policy as a whole, so the old one is read first.
    before = in_platform_names(cast(TimerData, timer.request("GET")))
    if execute_at is not None:
        if "payload" not in changes and not no_payload and _has_default_payload(before):
            # `create` made this payload from the instant, so it follows the new instant.
            changes["payload"] = default_payload(execute_at)
            after = None
        body |= (
            {"execute_at": format_instant(execute_at)} if after is None else {"execute_in": after}
        )
    callback = _changed_callback(before, changes, no_payload)
    if callback is not None:
        body["callback"] = callback
    if retry_changes:
        body["retry_policy"] = _in_one_spelling(before["retry_policy"]) | retry_changes
    if timer.is_v1:
        # The v1 API changes a callback in parts, so only the parts that were given are sent.
        given = {*changes, *(["payload"] if no_payload else [])}
        body = in_v1_names(body | {"callback": _changed_parts(callback, before, given)})
    show_timer("Timer updated.", timer.request("PUT", body=body), as_json=as_json)


def _has_default_payload(timer: TimerData) -> bool:
    payload = cast(CallbackData, timer["callback_config"]).get("payload")
    try:
        made_for = msgspec.json.decode(cast(msgspec.Raw, payload or b""), type=dict[str, str])
    except msgspec.DecodeError:
        return False
    return made_for == {"execute_at": timer["execute_at"]}


def _in_one_spelling(policy: object) -> CallbackData:
    """The policy without the members that repeat others by another name: a change of one name alone
    would contradict the other."""
    given = cast(CallbackData, policy or {})
    return {name: value for name, value in given.items() if name not in _SECOND_NAMES}


def _changed_callback(
    timer: TimerData, changes: CallbackData, no_payload: bool
) -> CallbackData | None:
    """The complete new callback, or None if it is unchanged."""
    old = cast(CallbackData, timer["callback_config"])
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
    if no_payload and "type" in old:
        new.pop("payload", None)
    elif no_payload:
        # The v1 API removes a payload that is null, and keeps one that is absent.
        new["payload"] = None
    return new


def _changed_parts(
    callback: CallbackData | None, before: TimerData, given: set[str]
) -> CallbackData:
    """The given parts, even if they are unchanged, and other parts that changed with them."""
    old = cast(CallbackData, before["callback_config"])
    return {n: v for n, v in (callback or {}).items() if n in given or v != old.get(n)}


class SingleTimer:
    """A UUID without a namespace goes to the platform API, which shows every member of the timers
    created there. All other ids go to the v1 API."""

    def __init__(
        self, id: str, namespace: str | None, *, server: str | None, api_key: str | None
    ) -> None:
        self.is_v1 = namespace is not None or not _UUID.fullmatch(id)
        self._path = _v1_path(namespace, id) if self.is_v1 else f"/timers/{id}"
        self._client = V1Client(server, api_key) if self.is_v1 else PlatformClient(server, api_key)
        self._place = repr(id)
        if self.is_v1 or not self._client.has_issued_key:
            # The platform API does not say which namespace is such a key's own.
            self._place += f" in namespace {namespace or DEFAULT_NAMESPACE!r}"

    def request(self, method: str, *, body: object = None, query: Query | None = None) -> object:
        return self._ask(method, self._path, body, query)

    def cancel(self) -> object:
        return self._ask(*self._cancel_request())

    def try_cancel(self) -> str | None:
        """The reason why the timer cannot be canceled; None when it is canceled."""
        answer, document = self._client.exchange(*self._cancel_request())
        return None if answer.is_success else self._refusal(document)

    def _ask(
        self, method: str, path: str, body: object = None, query: Query | None = None
    ) -> object:
        answer, document = self._client.exchange(method, path, body=body, query=query)
        if answer.status_code == 404:
            place = printable(f"{self._place} at {self._client.url}")
            fail(f"{self._refusal(document)}: {place}", ExitCode.FAILED)
        return self._client.data_of(answer, document)

    def _refusal(self, document: object) -> str:
        return refusal(document, has_issued_key=self._client.has_issued_key)

    def _cancel_request(self) -> tuple[str, str]:
        return ("POST", f"{self._path}/cancel") if self.is_v1 else ("DELETE", self._path)


def _v1_path(namespace: str | None, id: str) -> str:
    """The path of any timer, with its namespace and id encoded."""
    if namespace is None:
        namespace = DEFAULT_NAMESPACE
    return f"/timers/{path_segment('--namespace', namespace)}/{path_segment('ID', id)}"
