"""From the paths and bodies of the v1 API to the arguments of the service."""

from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace
from starlette.types import Scope

from duetime.api.http.caller import caller_of
from duetime.api.http.decoding import BodyDecoder
from duetime.api.http.values import due_of, metadata_of, retry_policy_of
from duetime.api.v1.request_types import (
    ChangeMembers,
    CreateBody,
    RedriveBody,
    SelectedUpdateBody,
    SelectionBody,
    UpdateBody,
)
from duetime.domain.callback import BusCallback, Callback, CallbackProtocol, HttpCallback
from duetime.domain.errors import InvalidInput
from duetime.domain.instants import parse_duration_ms
from duetime.domain.keys import TimerKey
from duetime.domain.limits import MAX_CALLBACK_TIMEOUT_MS, MIN_CALLBACK_TIMEOUT_MS
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.redaction import shown_headers
from duetime.ports.store import OnExisting
from duetime.service.create_requests import NewTimer
from duetime.service.namespaces import Namespaces

PolicyOf = Callable[[str], RetryPolicy]
"""The retry policy of a namespace, by its name."""

CHOICES = {"callbackProtocol": "'answer' or 'status'"}

_MIN_TIMEOUT_SECONDS = MIN_CALLBACK_TIMEOUT_MS / 1_000
_MAX_TIMEOUT_SECONDS = MAX_CALLBACK_TIMEOUT_MS // 1_000
_DEFAULT_PROTOCOL = CallbackProtocol.ANSWER
_PROTOCOLS = {protocol.value: protocol for protocol in CallbackProtocol}

decode_create = BodyDecoder(CreateBody, CHOICES).decode
decode_update = BodyDecoder(UpdateBody, CHOICES).decode
decode_selection = BodyDecoder(SelectionBody, {}).decode
decode_redrive = BodyDecoder(RedriveBody, {}).decode
decode_selected_update = BodyDecoder(SelectedUpdateBody, CHOICES).decode

_NOTHING = UpdateBody()


def new_timer_of(
    body: CreateBody, policy_of: PolicyOf, on_existing: OnExisting = OnExisting.KEEP
) -> NewTimer:
    """The timer to create. Decoding the body has checked the depth of the payload."""
    namespace = namespace_of(body.namespace, body.group_id)
    policy, timeout, headers = body.retry_policy, body.callback_timeout, body.callback_headers
    payload, protocol = body.payload, body.callback_protocol
    return NewTimer(
        namespace=namespace,
        id=body.id,
        execute_at=due_of(body.execute_at, body.execute_in),
        callback=HttpCallback(
            url=body.callback_url,
            headers=None if headers is UNSET else headers,
            payload=payload,
            timeout_ms=(
                None
                if timeout is UNSET and body.callback_timeout_seconds is UNSET
                else timeout_ms_of(timeout, body.callback_timeout_seconds)
            ),
            protocol=_DEFAULT_PROTOCOL if protocol is UNSET else _PROTOCOLS[protocol],
        ),
        retry_policy=None if policy is None else retry_policy_of(policy, policy_of(namespace)),
        metadata=None if body.metadata is UNSET else metadata_of(body.metadata),
        on_existing=on_existing,
    )


def retry_policy_in(namespaces: Namespaces, name: str) -> RetryPolicy:
    """The namespace's policy. A namespace that this node does not know gets the default policy:
    the service refuses its timers."""
    namespace = namespaces.known(name)
    return RetryPolicy() if namespace is None else namespace.options.retry_policy


def namespace_of(namespace: str | UnsetType, group_id: str | UnsetType) -> str:
    if namespace is not UNSET:
        if group_id is not UNSET and group_id != namespace:
            raise InvalidInput("group_id", "and namespace mean the same: give one of them")
        return namespace
    return DEFAULT_NAMESPACE if group_id is UNSET else group_id


def path_text(scope: Scope, name: str, field: str) -> str:
    """The decoded parameter `name` of the path. Raises `InvalidInput` that names `field`."""
    try:
        return unquote_to_bytes(scope["path_params"][name]).decode()
    except UnicodeDecodeError:
        raise InvalidInput(field, "must be UTF-8, percent-encoded") from None


def key_in_path(scope: Scope) -> TimerKey:
    """The key of the timer that the request is about. Raises `NamespaceNotFound` like `Caller`."""
    key = TimerKey(
        path_text(scope, "namespace", "namespace"), path_text(scope, "timerId", "timer_id")
    )
    return caller_of(scope).reach_timer(key)


def key_of(scope: Scope, body: SelectionBody | SelectedUpdateBody) -> TimerKey:
    """Like `key_in_path`, for a timer that the body names."""
    key = TimerKey(namespace_of(body.namespace, body.group_id), body.timer_id)
    return caller_of(scope).reach_timer(key)


def timeout_ms_of(text: str | UnsetType, seconds: float | UnsetType) -> int | None:
    """The timeout in either spelling, or None."""
    by_text = by_seconds = None
    if text is not UNSET:
        try:
            by_text = parse_duration_ms(text)
        except ValueError as error:
            raise InvalidInput("callback_timeout", str(error)) from None
    if seconds is not UNSET:
        if not _MIN_TIMEOUT_SECONDS <= seconds <= _MAX_TIMEOUT_SECONDS:
            problem = f"must be from {_MIN_TIMEOUT_SECONDS} to {_MAX_TIMEOUT_SECONDS}"
            raise InvalidInput("callback_timeout_seconds", problem)
        by_seconds = round(seconds * 1_000)
    if by_text is None:
        return by_seconds
    if by_seconds is not None and by_seconds != by_text:
        raise InvalidInput("callback_timeout_seconds", "and callback_timeout differ: give one")
    return by_text


def check_something_changes(body: ChangeMembers) -> None:
    changes = (getattr(body, name) for name in _NOTHING.__struct_fields__)
    if all(change is UNSET for change in changes):
        raise InvalidInput(
            "body",
            "has nothing to update: give execute_at, execute_in, callback_url, payload, "
            "retry_policy, callback_timeout, callback_headers or callback_protocol",
        )


def changed_callback(body: ChangeMembers, before: Callback) -> Callback | UnsetType:
    """The callback with the changes, or unset if there are none."""
    if isinstance(before, BusCallback) and body.retry_policy is not UNSET:
        problem = "cannot be changed: an event is retried until the bus has it"
        raise InvalidInput("retry_policy", problem)
    timeout_ms = timeout_ms_of(body.callback_timeout, body.callback_timeout_seconds)
    if (
        body.callback_url is UNSET
        and body.payload is UNSET
        and body.callback_headers is UNSET
        and body.callback_protocol is UNSET
        and timeout_ms is None
    ):
        return UNSET
    if not isinstance(before, HttpCallback):
        problem = "cannot be changed: the callback is not made over HTTP"
        raise InvalidInput(_changed_part(body), problem)
    after = before
    if body.callback_url is not UNSET:
        # The stored secrets stay, as if they had been sent back.
        headers = None if before.headers is None else shown_headers(before.headers)
        after = replace(after, url=body.callback_url, headers=headers)
    if body.payload is not UNSET:
        after = replace(after, payload=Raw(bytes(body.payload)))
    if body.callback_headers is not UNSET:
        after = replace(after, headers=body.callback_headers)
    if body.callback_protocol is not UNSET:
        after = replace(after, protocol=_PROTOCOLS[body.callback_protocol])
    return after if timeout_ms is None else replace(after, timeout_ms=timeout_ms)


def _changed_part(body: ChangeMembers) -> str:
    """The first member that would change the callback."""
    parts = ("callback_url", "payload", "callback_headers", "callback_protocol")
    return next((part for part in parts if getattr(body, part) is not UNSET), "callback_timeout")


def changed_policy(
    body: ChangeMembers, namespace: str, policy_of: PolicyOf
) -> RetryPolicy | UnsetType:
    """JSON's null restores the namespace's policy."""
    policy = body.retry_policy
    if policy is UNSET:
        return UNSET
    base = policy_of(namespace)
    return base if policy is None else retry_policy_of(policy, base)
