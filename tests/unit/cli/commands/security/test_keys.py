"""`duetime keys` against a scripted server."""

from typing import Any

import msgspec
import pytest

from tests.unit.cli.scripted_server import ScriptedServer, invoke, refusal

PATH = "/api/v1/keys"
COMMON: dict[str, Any] = {
    "id": "9c1f4b7e20d85a63",
    "name": "billing",
    "roles": ["read", "write"],
    "namespaces": ["billing", "invoices"],
    "expiresAt": None,
    "createdAt": "2026-01-01T00:00:00Z",
}
ISSUED = {**COMMON, "key": "dt_9c1f4b7e20d85a63_secret"}
LISTED: dict[str, Any] = {
    **COMMON,
    "lastUsedAt": None,
    "rateLimit": None,
    "maxConcurrent": None,
    "replacedBy": None,
}


def refused(*arguments: str) -> tuple[int, str]:
    result = invoke("keys", *arguments)
    assert result.stdout == ""
    return result.exit_code, result.stderr.splitlines()[-1]


def test_a_key_is_created_and_shown_once(server: ScriptedServer) -> None:
    limits = {"rateLimit": {"perSecond": 2.5, "burst": 7}, "maxConcurrent": 5}
    server.answer("POST", PATH, ISSUED | limits, 201)
    result = invoke(
        *("keys", "create", "billing", "--role", "read", "--role", "write"),
        *("--namespace", "billing", "--namespace", "invoices"),
        *("--expires-at", "2090-01-01T01:00:00+01:00", "--rate", "2.5", "--burst", "7"),
        *("--max-concurrent", "5"),
    )
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "Key created. It is shown only now, and kept nowhere: store it safely.",
        "key: dt_9c1f4b7e20d85a63_secret",
        "id: 9c1f4b7e20d85a63",
        "name: billing",
        "roles: read, write",
        "namespaces: billing, invoices",
        "expires: never",
        "limits: 2.5/s, bursts of 7; 5 under way",
    ]
    assert server.bodies("POST", PATH) == [
        {
            "name": "billing",
            "roles": ["read", "write"],
            "namespaces": ["billing", "invoices"],
            "expiresAt": "2090-01-01T00:00:00Z",
            "rateLimit": {"perSecond": 2.5, "burst": 7},
            "maxConcurrent": 5,
        }
    ]


def test_the_key_as_json_for_scripts(server: ScriptedServer) -> None:
    server.answer("POST", PATH, ISSUED, 201)
    arguments = ("keys", "create", "x", "--role", "read", "--namespace", "*", "--expires-in", "90d")
    result = invoke(*arguments, "--json")
    assert msgspec.json.decode(result.stdout)["key"] == "dt_9c1f4b7e20d85a63_secret"
    (body,) = server.bodies("POST", PATH)
    assert isinstance(body, dict)
    assert body["namespaces"] == ["*"]
    assert body["expiresAt"].endswith("Z")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--role", "read"], "Missing option '--namespace'"),
        (["--namespace", "a"], "Missing option '--role'"),
        (["--namespace", "a", "--role", "owner"], "'owner' is not one of"),
        (["--namespace", "a", "--role", "read", "--burst", "5"], "--burst: needs --rate"),
        (["--namespace", "a", "--role", "read", "--expires-in", "x"], "--expires-in: must be a"),
        (["--namespace", "a", "--role", "read", "--expires-at", "x"], "--expires-at: must be a"),
        (
            ["--namespace", "a", "--role", "read", "--expires-in", "1d", "--expires-at", "x"],
            "give one of them, not both",
        ),
    ],
)
def test_bad_options_are_refused_before_a_request(
    server: ScriptedServer, arguments: list[str], problem: str
) -> None:
    result = invoke("keys", "create", "name", *arguments)
    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split())
    assert server.requests == []


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("expiresAt must be in the future", "--expires-at must be in the future"),
        ("rateLimit.perSecond must be from 0.001 to 1", "--rate must be from 0.001 to 1"),
        ("rateLimit.burst must be from 1 to 5", "--burst must be from 1 to 5"),
        ("maxConcurrent must be from 1 to 5", "--max-concurrent must be from 1 to 5"),
    ],
)
def test_refusals_name_the_option(server: ScriptedServer, message: str, shown: str) -> None:
    server.answer("POST", PATH, refusal("INVALID_INPUT", message), 400)
    assert refused("create", "a", "--role", "read", "--namespace", "a") == (1, shown)


def test_keys_are_listed(server: ScriptedServer) -> None:
    other = {
        **LISTED,
        "id": "b",
        "name": "a\x1b[31mb",
        "roles": ["admin"],
        "namespaces": ["*"],
        "expiresAt": "2026-01-02T00:00:00Z",
        "lastUsedAt": "2026-01-01T00:00:00Z",
        "rateLimit": {"perSecond": 2.5, "burst": 1_000},
        "maxConcurrent": 4,
        "replacedBy": "c",
    }
    server.answer("GET", PATH, {"keys": [LISTED, other]})
    rows = [line.split("\t") for line in invoke("keys", "list").stdout.splitlines()]
    assert rows[0] == [
        *("id", "name", "roles", "expires", "last used", "limits", "created", "namespaces")
    ]
    first = dict(zip(rows[0], rows[1], strict=True))
    assert first["roles"] == "read, write"
    assert (first["expires"], first["last used"]) == ("never", "never")
    assert (first["limits"], first["namespaces"]) == ("as the service", "billing, invoices")
    second = dict(zip(rows[0], rows[2], strict=True))
    assert "\x1b" not in second["name"]
    assert second["expires"].endswith(" ago, rotated")
    assert second["limits"] == "2.5/s, bursts of 1,000; 4 under way"
    assert second["namespaces"] == "all"
    assert msgspec.json.decode(invoke("keys", "list", "--json").stdout)["keys"][0] == LISTED


def test_no_keys(server: ScriptedServer) -> None:
    server.answer("GET", PATH, {"keys": []})
    assert invoke("keys", "list").stdout.startswith("no keys: only the API_KEY of the settings")


def test_a_key_is_rotated(server: ScriptedServer) -> None:
    path = f"{PATH}/a%2Fb/rotate"
    server.answer("POST", f"{PATH}/a/b/rotate", ISSUED, 201)
    result = invoke("keys", "rotate", "a/b")
    assert result.stdout.splitlines()[1] == "key: dt_9c1f4b7e20d85a63_secret"
    assert result.stdout.splitlines()[-1] == "The old key a/b works on for 24h."
    ended = invoke("keys", "rotate", "a/b", "--overlap", "0s")
    assert ended.stdout.splitlines()[-1] == "The old key a/b has ended."
    assert [request.url.raw_path.decode() for request in server.requests] == [path, path]
    assert server.bodies("POST", f"{PATH}/a/b/rotate") == [{"overlap": "24h"}, {"overlap": "0s"}]
    as_json = invoke("keys", "rotate", "a/b", "--json")
    assert msgspec.json.decode(as_json.stdout) == ISSUED


def test_a_key_is_revoked(server: ScriptedServer) -> None:
    server.answer("DELETE", f"{PATH}/a", None, 204)
    assert invoke("keys", "revoke", "a").stdout == "Key a revoked.\n"
    server.answer("DELETE", f"{PATH}/b", refusal("KEY_NOT_FOUND", "key not found"), 404)
    assert refused("revoke", "b") == (1, "key not found")
