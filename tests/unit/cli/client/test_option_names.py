"""Names in refusals: the options that the user typed, not the fields of the API."""

import pytest

from tests.unit.cli.scripted_server import OPERATIONS, ScriptedServer, invoke, namespace, refusal

V1 = ("create", "--id", "order-17", "--url", "http://127.0.0.1/", "--in", "1h")
PLATFORM = ("create", "--url", "http://127.0.0.1/", "--in", "1h")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("callbackUrl must be an http or https URL", "--url must be an http or https URL"),
        ("executeIn must be at least 5s", "--in must be at least 5s"),
        ("executeAt must be in the future", "--at must be in the future"),
        (
            "retryPolicy.initialInterval must not be longer than maxInterval",
            "--initial-interval must not be longer than --max-interval",
        ),
        ("payload must be at most 9 bytes of JSON", "--payload must be at most 9 bytes of JSON"),
        (
            "a timer with this id exists and differs in executeIn, payload",
            "a timer with this id exists and differs in --in, --payload",
        ),
        (
            "cursor is of another list: status, dueAfter and order must be the same",
            "--cursor is of another list: --status, --due-after and --order must be the same",
        ),
        # Words that are no fields, and texts of users.
        ("the payload of this id is too long", "the payload of this id is too long"),
        ("namespace 'numShards' is being deleted", "namespace 'numShards' is being deleted"),
    ],
)
def test_create_through_the_v1_api(server: ScriptedServer, said: str, shown: str) -> None:
    server.answer("POST", "/api/v1/timers", refusal("INVALID_INPUT", said), status=400)
    result = invoke(*V1)
    assert (result.exit_code, result.stderr) == (1, f"{shown}\n")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("execute_in must be at least 5s", "--in must be at least 5s"),
        ("callback.url has no host", "--url has no host"),
        ("callback.headers has too many members", "--header has too many members"),
        ("retry_policy.max_retries must be from 0 to 9", "--max-retries must be from 0 to 9"),
    ],
)
def test_create_through_the_platform_api(server: ScriptedServer, said: str, shown: str) -> None:
    server.answer("POST", "/timers", {"code": 2, "message": said, "data": None}, status=400)
    result = invoke(*PLATFORM)
    assert (result.exit_code, result.stderr) == (1, f"{shown}\n")


@pytest.mark.parametrize(
    ("arguments", "said", "shown"),
    [
        (
            ["cancel", "--endpoint", "x/y"],
            "filter.endpoint must be a host or an origin",
            "--endpoint must be a host or an origin",
        ),
        (
            ["reschedule", "--to", "2020-01-01T00:00:00Z", "--all"],
            "executeAt must be in the future",
            "--to must be in the future",
        ),
    ],
)
def test_changes_of_many_timers(
    server: ScriptedServer, arguments: list[str], said: str, shown: str
) -> None:
    server.answer("POST", OPERATIONS, refusal("INVALID_INPUT", said), status=400)
    result = invoke(*arguments, "--yes")
    assert (result.exit_code, result.stderr) == (1, f"{shown}\n")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("numShards was fixed at 16", "--shards was fixed at 16"),
        (
            "slo must be over whole hours, from 1h to 90d",
            "--slo must be over whole hours, from 1h to 90d",
        ),
    ],
)
def test_namespaces(server: ScriptedServer, said: str, shown: str) -> None:
    path = "/api/v1/namespaces/orders"
    server.answer("GET", path, namespace("orders"))
    server.answer("PUT", path, refusal("INVALID_INPUT", said), status=400)
    result = invoke("namespaces", "set", "orders", "--shards", "64")
    assert (result.exit_code, result.stderr) == (1, f"{shown}\n")


def test_the_audit_log(server: ScriptedServer) -> None:
    said = "cursor is of another list: actor, target, from and until must be the same"
    server.answer("GET", "/api/v1/audit-log", refusal("INVALID_INPUT", said), status=400)
    result = invoke("audit-log")
    options = "--actor, --target, --since and --until must be the same"
    assert (result.exit_code, result.stderr) == (1, f"--cursor is of another list: {options}\n")
