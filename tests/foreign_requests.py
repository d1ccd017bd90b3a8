"""Requests about timers, namespaces and operations of another team, for every operation."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec import Struct

from duetime.api.v1.routes.examples import FULL_IMPORT

OWN = "team-a"
"""The namespace of the key that sends the requests."""

URL = "https://example.com/due"
AT = "2040-01-01T00:00:00Z"


class Subject(Struct, frozen=True):
    """The things of a team, or names of things that nobody has."""

    namespace: str
    timer_id: str
    """The id of timers in the namespace and in `default`, a UUID."""
    failed_id: str
    operation_id: str
    key_id: str
    secret_id: str
    cursor: str
    """The cursor of a page of the namespace."""
    idempotency_key: str


class Request(NamedTuple):
    method: str
    path: str
    body: object = b""
    """Bytes, or a value to be sent as JSON."""


def _create(subject: Subject, namespace: str | None, **more: object) -> dict[str, object]:
    body = {"id": subject.timer_id, "executeAt": AT, "callbackUrl": URL, **more}
    return body if namespace is None else {**body, "namespace": namespace}


def _creates(path: str) -> Callable[[Subject], Iterator[Request]]:
    def requests(subject: Subject) -> Iterator[Request]:
        for namespace in (subject.namespace, "default", None):
            yield Request("POST", path, _create(subject, namespace))
            yield Request("POST", path, _create(subject, namespace, retryPolicy={"maxRetries": 1}))
        yield Request("POST", path, _create(subject, subject.namespace, id="new"))
        yield Request("POST", path, _create(subject, None, groupId=subject.namespace))
        yield Request("POST", path, _create(subject, subject.namespace, payload="x" * 300_000))
        yield Request("POST", path, _create(subject, subject.namespace, executeAt="yesterday"))

    return requests


def _of_path(
    method: str, ending: str = "", body: object = b"", base: str = "/api/v1/timers"
) -> Any:
    def requests(subject: Subject) -> Iterator[Request]:
        for namespace in (subject.namespace, "default"):
            for id in (subject.timer_id, subject.failed_id):
                yield Request(method, f"{base}/{namespace}/{id}{ending}", body)
        # The id of another team's timer means nothing in the caller's own namespace.
        yield Request(method, f"{base}/{OWN}/{subject.timer_id}{ending}", body)

    return requests


def _of_body(verb: str, **more: object) -> Any:
    def requests(subject: Subject) -> Iterator[Request]:
        for where in (
            {"namespace": subject.namespace},
            {"groupId": subject.namespace},
            {"namespace": "default"},
            {},
        ):
            body = {**where, "timerId": subject.timer_id, **more}
            yield Request("POST", f"/api/v1/timers/{verb}", body)

    return requests


def _lists(path: str) -> Any:
    def requests(subject: Subject) -> Iterator[Request]:
        for namespace in (subject.namespace, "default", OWN):
            for more in ("", "&limit=1", "&status=failed", f"&cursor={subject.cursor}"):
                yield Request("GET", f"{path}?namespace={namespace}{more}")
        yield Request("GET", path)
        yield Request("GET", f"{path}?groupId={subject.namespace}")

    return requests


def _batch(subject: Subject) -> Iterator[Request]:
    entries = [_create(subject, name) for name in (subject.namespace, "default", None)]
    entries.append(_create(subject, subject.namespace, retryPolicy={"maxRetries": 2}))
    entries.append(_create(subject, subject.namespace, executeAt="yesterday"))
    entries.append(_create(subject, subject.namespace, id="new"))
    yield Request("POST", "/api/v1/timers/batch", {"timers": entries})
    yield Request("POST", "/api/v1/timers/batch", {"timers": entries[:1]})


def _import(subject: Subject) -> Iterator[Request]:
    lines: list[object] = [_create(subject, name) for name in (subject.namespace, "default", None)]
    lines.append(_create(subject, subject.namespace, id="new"))
    for example in map(json.loads, FULL_IMPORT.splitlines()):
        if "namespace" in example:
            lines.append(
                {"full": 1, "namespace": {**example["namespace"], "name": subject.namespace}}
            )
        else:
            for name in (subject.namespace, "default"):
                timer = {**example["timer"], "namespace": name, "id": subject.timer_id}
                lines.append({"full": 1, "timer": timer})
    content = "\n".join(map(json.dumps, lines)).encode()
    yield Request("POST", "/api/v1/timers/import", content)
    for query in (f"namespace={subject.namespace}", f"groupId={subject.namespace}"):
        yield Request("POST", f"/api/v1/timers/import?{query}", content)


def _redrive(subject: Subject) -> Iterator[Request]:
    for where in ({"namespace": subject.namespace}, {"namespace": "default"}, {}):
        for what in (
            {"timerId": subject.failed_id},
            {"timerId": subject.failed_id, "dryRun": True},
            {"all": True},
            {"all": True, "dryRun": True},
            {"errorContains": "500"},
        ):
            yield Request("POST", "/api/v1/timers/redrive", {**where, **what})


def _start(subject: Subject) -> Iterator[Request]:
    for where in ({"namespace": subject.namespace}, {"namespace": "default"}, {}):
        for what in (
            {"action": "cancel", "all": True},
            {"action": "cancel", "all": True, "dryRun": True},
            {"action": "redrive", "all": True},
            {"action": "reschedule", "filter": {"idPrefix": "0"}, "moveBy": "1h"},
            {"action": "run-now", "filter": {"metadata": {"key": "a", "value": "b"}}},
        ):
            yield Request("POST", "/api/v1/operations", {**where, **what})


def _operation(method: str) -> Any:
    def requests(subject: Subject) -> Iterator[Request]:
        yield Request(method, f"/api/v1/operations/{subject.operation_id}")

    return requests


def _namespace(method: str, *queries: str, body: object = b"") -> Any:
    def requests(subject: Subject) -> Iterator[Request]:
        for namespace in (subject.namespace, "default"):
            for query in queries or ("",):
                yield Request(method, f"/api/v1/namespaces/{namespace}{query}", body)

    return requests


def _secrets(method: str) -> Any:
    def requests(subject: Subject) -> Iterator[Request]:
        for namespace in (subject.namespace, "default"):
            path = f"/api/v1/namespaces/{namespace}/secrets"
            if method == "DELETE":
                path += f"/{subject.secret_id}"
            yield Request(method, path, {} if method == "POST" else b"")

    return requests


def _audit_log(subject: Subject) -> Iterator[Request]:
    path = "/api/v1/audit-log"
    for query in ("", "?action=timer.cancel", f"?target={subject.timer_id}"):
        yield Request("GET", path + query)
    for namespace in (subject.namespace, "default"):
        yield Request("GET", f"{path}?namespace={namespace}")


def _platform_create(subject: Subject) -> Iterator[Request]:
    body = {"execute_at": AT, "callback": {"type": "http", "url": URL}}
    yield Request("POST", "/timers", body)
    yield Request("POST", "/timers", {**body, "idempotency_key": subject.idempotency_key})


def _platform(method: str, body: object = b"") -> Any:
    def requests(subject: Subject) -> Iterator[Request]:
        for id in (subject.timer_id, subject.failed_id):
            yield Request(method, f"/timers/{id}", body)

    return requests


def _platform_list(subject: Subject) -> Iterator[Request]:
    for query in ("", "?limit=1", "?status=failed", "?offset=1"):
        yield Request("GET", f"/timers{query}")


def _same(*requests: Request) -> Any:
    return lambda subject: iter(requests)


def _key(method: str, ending: str = "") -> Any:
    return lambda subject: iter([Request(method, f"/api/v1/keys/{subject.key_id}{ending}")])


PAUSED_ENDPOINT = "https://paused-by-others.example"
"""An endpoint that others have paused, and that is not paused where there are no others."""

_NEW_KEY = {"name": "mine", "roles": ["admin"], "namespaces": ["*"]}

FOREIGN_REQUESTS: dict[str, Callable[[Subject], Iterator[Request]]] = {
    "createTimer": _platform_create,
    "listTimers": _platform_list,
    "getTimer": _platform("GET"),
    "updateTimer": _platform("PUT", {"execute_at": AT}),
    "cancelTimer": _platform("DELETE"),
    "metrics": _same(Request("GET", "/metrics")),
    "createTimerV1": _creates("/api/v1/timers"),
    "upsertTimerV1": _creates("/api/v1/timers/create"),
    "listTimersV1": _lists("/api/v1/timers"),
    "exportTimersV1": _lists("/api/v1/timers/export"),
    "getTimerV1": _of_path("GET"),
    "explainTimerV1": _of_path("GET", base="/api/v1/explain"),
    "updateTimerV1": _of_path("PUT", body={"executeAt": AT, "retryPolicy": None}),
    "cancelTimerV1": _of_path("POST", "/cancel"),
    "deleteTimerV1": _of_path("DELETE"),
    "getSelectedTimerV1": _of_body("get"),
    "updateSelectedTimerV1": _of_body("update", callbackUrl="https://evil.example/"),
    "cancelSelectedTimerV1": _of_body("cancel"),
    "deleteSelectedTimerV1": _of_body("delete"),
    "createTimersV1": _batch,
    "importTimersV1": _import,
    "redriveTimersV1": _redrive,
    "startOperationV1": _start,
    "listOperationsV1": _same(
        Request("GET", "/api/v1/operations"), Request("GET", "/api/v1/operations?limit=1")
    ),
    "getOperationV1": _operation("GET"),
    "abortOperationV1": _operation("DELETE"),
    "listNamespacesV1": _same(Request("GET", "/api/v1/namespaces")),
    "getNamespaceV1": _namespace("GET"),
    "putNamespaceV1": _namespace("PUT", body={"retention": "1d"}),
    "deleteNamespaceV1": _namespace("DELETE", "", "?force=true"),
    "createSecretV1": _secrets("POST"),
    "listSecretsV1": _secrets("GET"),
    "revokeSecretV1": _secrets("DELETE"),
    "listAuditLogV1": _audit_log,
    "listEndpointsV1": _same(Request("GET", "/api/v1/endpoints")),
    "listProblemsV1": _same(Request("GET", "/api/v1/problems")),
    "pauseEndpointV1": _same(
        Request("POST", "/api/v1/endpoints/pause", {"endpoint": "https://theirs.example"})
    ),
    "resumeEndpointV1": _same(
        Request("POST", "/api/v1/endpoints/resume", {"endpoint": PAUSED_ENDPOINT})
    ),
    "createKeyV1": _same(Request("POST", "/api/v1/keys", _NEW_KEY)),
    "listKeysV1": _same(Request("GET", "/api/v1/keys")),
    "rotateKeyV1": _key("POST", "/rotate"),
    "revokeKeyV1": _key("DELETE"),
    "createUiLinkV1": _same(Request("POST", "/api/v1/ui-links")),
}
"""Requests about a subject, by the id of their operation."""
