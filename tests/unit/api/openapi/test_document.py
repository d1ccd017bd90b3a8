"""The OpenAPI document of both APIs."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from duetime.api.openapi.document import openapi_document
from duetime.api.platform.examples import CREATE, CREATE_NATS, UPDATE
from duetime.api.platform.requests import decode_create, new_timer_of
from duetime.api.platform.types import BusStatus, ClusterStatus, NatsStatus
from duetime.api.v1.routes import examples as v1
from duetime.domain.callback import NatsCallback
from duetime.domain.instants import parse_instant
from duetime.domain.lateness.objective import LatenessCount
from duetime.ports.endpoints import EndpointFigures, EndpointState, EndpointStatus
from tests.unit.api.asgi_client import ApiBench, call

ONE = "/api/v1/timers/{namespace}/{timerId}"
SECRETS = "/api/v1/namespaces/{namespace}/secrets"

KEYED = {"401", "403", "429", "500", "503"}
"""Answers that every operation with a key has."""

ANSWERS = {
    ("/timers", "post"): KEYED | {"200", "201", "400", "409", "413", "429"},
    ("/timers", "get"): KEYED | {"200", "400"},
    ("/timers/{id}", "get"): KEYED | {"200", "400", "404"},
    ("/timers/{id}", "put"): KEYED | {"200", "400", "404", "413"},
    ("/timers/{id}", "delete"): KEYED | {"200", "400", "404"},
    ("/livez", "get"): {"200"},
    ("/readyz", "get"): {"200", "503"},
    ("/healthz", "get"): {"200", "500"},
    ("/metrics", "get"): KEYED | {"200"},
    ("/api/v1/timers", "post"): KEYED | {"200", "400", "409", "413", "429", "507"},
    ("/api/v1/timers", "get"): KEYED | {"200", "400"},
    (ONE, "get"): KEYED | {"200", "400", "404"},
    (ONE, "put"): KEYED | {"200", "400", "404", "409", "413", "507"},
    (ONE, "delete"): KEYED | {"204", "400", "404", "409", "507"},
    (f"{ONE}/cancel", "post"): KEYED | {"200", "400", "404", "409", "507"},
    ("/api/v1/timers/cancel", "post"): KEYED | {"200", "400", "404", "409", "413", "507"},
    ("/api/v1/timers/create", "post"): KEYED | {"200", "400", "409", "413", "429", "507"},
    ("/api/v1/timers/get", "post"): KEYED | {"200", "400", "404", "413"},
    ("/api/v1/timers/update", "post"): KEYED | {"200", "400", "404", "409", "413", "507"},
    ("/api/v1/timers/delete", "post"): KEYED | {"204", "400", "404", "409", "413", "507"},
    ("/api/v1/explain/{namespace}/{timerId}", "get"): KEYED | {"200", "400", "404"},
    ("/api/v1/timers/batch", "post"): KEYED | {"200", "400", "413", "507"},
    ("/api/v1/timers/export", "get"): KEYED | {"200", "400"},
    ("/api/v1/timers/import", "post"): KEYED | {"200", "400", "507"},
    ("/api/v1/timers/redrive", "post"): KEYED | {"200", "400", "404", "409", "413", "507"},
    ("/api/v1/operations", "post"): KEYED | {"200", "202", "400", "413", "429", "507"},
    ("/api/v1/operations", "get"): KEYED | {"200", "400"},
    ("/api/v1/operations/{operationId}", "get"): KEYED | {"200", "400", "404"},
    ("/api/v1/operations/{operationId}", "delete"): KEYED | {"200", "400", "404", "409", "507"},
    ("/api/v1/namespaces", "get"): KEYED | {"200", "400"},
    ("/api/v1/namespaces/{name}", "get"): KEYED | {"200", "400", "404"},
    ("/api/v1/namespaces/{name}", "put"): KEYED | {"200", "400", "413", "507"},
    ("/api/v1/namespaces/{name}", "delete"): KEYED | {"202", "400", "404", "409", "429", "507"},
    (SECRETS, "post"): KEYED | {"201", "400", "404", "409", "413"},
    (SECRETS, "get"): KEYED | {"200", "400", "404"},
    (f"{SECRETS}/{{secretId}}", "delete"): KEYED | {"204", "400", "404", "409"},
    ("/.well-known/jwks.json", "get"): {"200", "400", "503"},
    ("/api/v1/endpoints", "get"): KEYED | {"200", "400"},
    ("/api/v1/problems", "get"): KEYED | {"200", "400"},
    ("/api/v1/endpoints/pause", "post"): KEYED | {"200", "400", "409", "413"},
    ("/api/v1/endpoints/resume", "post"): KEYED | {"204", "400", "404", "413"},
    ("/api/v1/audit-log", "get"): KEYED | {"200", "400"},
    ("/api/v1/keys", "post"): KEYED | {"201", "400", "409", "413"},
    ("/api/v1/keys", "get"): KEYED | {"200", "400"},
    ("/api/v1/keys/{keyId}", "delete"): KEYED | {"204", "400", "404"},
    ("/api/v1/keys/{keyId}/rotate", "post"): KEYED | {"201", "400", "404", "409", "413"},
    ("/api/v1/ui-links", "post"): KEYED | {"201", "400"},
}


async def document(api: ApiBench) -> Any:
    reply = await call(api.app, "GET", "/openapi.json")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    return reply.json


def operations(served: Any) -> Iterator[tuple[str, str, Any]]:
    for path, item in served["paths"].items():
        for method in item.keys() - {"parameters"}:
            yield path, method, item[method]


async def test_every_path_and_answer_is_described(api: ApiBench) -> None:
    described = {
        (path, method): set(operation["responses"])
        for path, method, operation in operations(await document(api))
    }
    assert described == ANSWERS


async def test_the_document_is_valid(api: ApiBench) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(await document(api))


async def test_every_reference_has_a_schema(api: ApiBench) -> None:
    served = await document(api)
    names = re.findall(r"'#/components/schemas/([^']+)'", str(served))
    assert set(names) <= set(served["components"]["schemas"])
    assert served["paths"]["/healthz"]["get"]["security"] == []
    assert served["security"] == [{"apiKey": []}, {"bearer": []}]
    assert set(served["components"]["securitySchemes"]) == {"apiKey", "bearer"}


async def test_names_are_unique_for_generated_clients(api: ApiBench) -> None:
    served = await document(api)
    names = [operation["operationId"] for _, _, operation in operations(served)]
    assert len(set(names)) == len(names)
    schemas = served["components"]["schemas"]
    assert all(schema["title"] == name for name, schema in schemas.items())
    assert all(name.isalnum() for name in schemas)


async def test_no_request_member_has_a_default_that_a_client_would_send(
    api: ApiBench,
) -> None:
    """If sent, it could contradict another spelling, or change a member that was to stay."""
    for name, schema in (await document(api))["components"]["schemas"].items():
        for member, details in schema["properties"].items():
            if name.endswith("Body"):
                assert details.get("default", False) is False, (name, member)


async def test_every_example_fits_its_schema(api: ApiBench) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    served = await document(api)
    checked = 0
    for content in contents(served["paths"]):
        validator = jsonschema.Draft202012Validator(
            {**content["schema"], "components": served["components"]}
        )
        for example in content["examples"].values():
            validator.validate(example["value"])
            checked += 1
    assert checked > len(ANSWERS)


def contents(part: Any) -> Iterator[Any]:
    """All parts that have a schema and examples, at any depth."""
    if isinstance(part, dict):
        if {"schema", "examples"} <= part.keys():
            yield part
        else:
            for each in part.values():
                yield from contents(each)
    if isinstance(part, list):
        for each in part:
            yield from contents(each)


async def test_the_examples_of_the_platform_api_are_accepted(api: ApiBench) -> None:
    created = await api.request("POST", "/timers", CREATE)
    assert created.status == 201
    assert (await api.request("PUT", f"/timers/{created.data['id']}", UPDATE)).status == 200


async def test_the_nats_example_has_its_subject_and_ack(api: ApiBench) -> None:
    callback = new_timer_of(decode_create(msgspec.json.encode(CREATE_NATS))).callback
    assert isinstance(callback, NatsCallback)
    assert (callback.subject, callback.ack) == ("events.timer.triggered.user123", True)


async def test_the_examples_have_the_members_of_real_answers(api: ApiBench) -> None:
    created = await api.request("POST", "/timers", CREATE)
    path = f"/timers/{created.data['id']}"
    api.engine = replace(
        api.engine,
        cluster=ClusterStatus("node", 1, 16, 0.1, False),
        bus=BusStatus("nats://broker:4222", True, True, 0, 0, 0, 0),
        nats=NatsStatus("nats://server:4222", True),
    )
    real = {
        ("/timers", "post", "201"): created,
        ("/timers", "get", "200"): await api.request("GET", "/timers"),
        ("/timers/{id}", "get", "200"): await api.request("GET", path),
        ("/timers/{id}", "put", "200"): await api.request("PUT", path, UPDATE),
        ("/timers/{id}", "delete", "200"): await api.request("DELETE", path),
        ("/healthz", "get", "200"): await api.request("GET", "/healthz"),
    }
    served: Any = openapi_document()
    for (route, method, status), reply in real.items():
        content = served["paths"][route][method]["responses"][status]["content"]
        shown = content["application/json"]["examples"]["Success"]["value"]
        assert list(shown["data"]) == list(reply.data), route
        assert shown["message"] == reply.json["message"]


async def test_the_examples_of_the_v1_api_are_answered_as_shown(api: ApiBench) -> None:
    answer = (await api.request("POST", "/api/v1/timers", v1.CREATE)).json
    assert list(answer) == list(v1.TIMER)
    unlike = ("createdAt", "updatedAt", "deliveryId")
    assert without(answer, *unlike) == without(v1.TIMER, *unlike)
    assert (await api.request("POST", "/api/v1/timers/get", v1.SELECTION)).json == answer

    path = f"/api/v1/timers/{v1.NAMESPACE}/{v1.TIMER_ID}"
    changed = (await api.request("PUT", path, v1.UPDATE)).json
    assert without(changed, *unlike) == without(v1.UPDATED, *unlike)
    body = v1.SELECTION | v1.UPDATE
    assert (await api.request("POST", "/api/v1/timers/update", body)).status == 200

    page = (await api.request("GET", "/api/v1/timers?limit=1")).json
    assert list(page) == list(v1.PAGE)
    assert (await api.request("GET", f"/api/v1/timers?cursor={v1.CURSOR}")).status == 200
    assert (await api.request("POST", "/api/v1/timers/delete", v1.SELECTION)).status == 204


async def test_the_first_example_of_a_bulk_operation_changes_nothing(api: ApiBench) -> None:
    """The docs page sends it as it is."""
    post = (await document(api))["paths"]["/api/v1/operations"]["post"]
    first = next(iter(post["requestBody"]["content"]["application/json"]["examples"].values()))
    assert first["value"]["dryRun"] is True


async def test_the_example_of_a_conflict_is_answered_as_shown(api: ApiBench) -> None:
    await api.request("POST", "/api/v1/timers", v1.CREATE)
    other = v1.CREATE | {"executeAt": v1.NEXT_EXECUTE_AT, "payload": 1}
    reply = await api.request("POST", "/api/v1/timers", other)
    answers = (await document(api))["paths"]["/api/v1/timers"]["post"]["responses"]
    (example,) = answers["409"]["content"]["application/json"]["examples"].values()
    assert without(reply.json, "timestamp") == without(example["value"], "timestamp")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/api/v1/timers", ["created", "existing"]),
        ("/api/v1/timers/create", ["created", "replaced", "existing"]),
    ],
)
async def test_creates_document_the_header_that_says_whether_the_timer_is_new(
    api: ApiBench, path: str, told: list[str]
) -> None:
    header = (await document(api))["paths"][path]["post"]["responses"]["200"]["headers"]
    assert header["Timer-Existence"]["required"]
    assert header["Timer-Existence"]["schema"]["enum"] == told
    reply = await api.request("POST", path, v1.CREATE)
    assert reply.headers["timer-existence"] == "created"


async def test_the_examples_of_many_timers_are_answered_as_shown(api: ApiBench) -> None:
    batch = await api.request("POST", "/api/v1/timers/batch", v1.BATCH)
    assert batch.json == v1.BATCH_RESULTS
    await api.request("DELETE", "/api/v1/timers/default/order-1043-expiry")
    imported = await api.request("POST", "/api/v1/timers/import", v1.IMPORT.encode())
    assert imported.json == v1.IMPORTED
    for body in (v1.REDRIVE_COUNT, v1.REDRIVE_ALL):
        redriven = await api.request("POST", "/api/v1/timers/redrive", body)
        assert redriven.json == {"matched": 0, "redriven": 0}


async def test_the_examples_of_namespaces_and_endpoints_are_answered_as_shown(
    api: ApiBench,
) -> None:
    path = f"/api/v1/namespaces/{v1.OTHER_NAMESPACE}"
    hour = api.clock.now() // 3_600_000_000
    count = LatenessCount(v1.OTHER_NAMESPACE, hour, in_time=88_001, late=11)
    await api.store.lateness_ledger.add_lateness([count])
    await api.request("PUT", path, v1.NAMESPACE_BODY)
    await api.objectives.update()
    put = (await api.request("PUT", path, v1.NAMESPACE_BODY)).json
    assert without(put, "counts") == v1.NAMESPACE_IN_LIST
    assert list(put) == list(v1.NAMESPACE_ANSWER)
    assert list(put["counts"]) == list(v1.COUNTS)
    listed = (await api.request("GET", "/api/v1/namespaces")).json
    assert v1.NAMESPACE_IN_LIST in listed["namespaces"]

    api.reporter.figures["https://app.example.com:443"] = EndpointFigures(
        attempts=310, failures=24, p50_ms=18.2, p99_ms=904.5
    )
    api.reporter.statuses = [
        EndpointStatus(
            endpoint="https://app.example.com:443",
            state=EndpointState.OPEN,
            in_flight=0,
            waiting=0,
            consecutive_failures=24,
            last_error="connection refused",
            opened_at=parse_instant("2030-01-01T12:00:03.200Z"),
        )
    ]
    seen = (await api.request("GET", "/api/v1/endpoints")).json
    assert seen == {**v1.ENDPOINTS, "node": "node-1"}
    paused = (await api.request("POST", "/api/v1/endpoints/pause", v1.PAUSE)).json
    assert without(paused, "pausedAt", "pausedBy") == without(v1.PAUSED, "pausedAt", "pausedBy")
    assert list(paused) == list(v1.PAUSED)


def without(answer: Any, *members: str) -> Any:
    return {name: value for name, value in answer.items() if name not in members}
