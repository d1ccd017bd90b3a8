"""`duetime secrets` against a scripted server."""

import json

import pytest

from tests.unit.cli.scripted_server import ScriptedServer, invoke, refusal

PATH = "/api/v1/namespaces/orders/secrets"
TEXT = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
OLD = {"id": "old", "type": "hmac", "createdAt": "2030-01-01T00:00:00Z", "expiresAt": None}
NEW = {**OLD, "id": "new", "secret": TEXT}
PUBLIC = {**NEW, "type": "ed25519", "secret": "whsk_AAAA", "publicKey": "whpk_AAAA"}


def test_a_new_secret_is_shown_once_and_says_so(server: ScriptedServer) -> None:
    server.answer("POST", PATH, NEW, 201)
    assert invoke("secrets", "create", "orders").stdout.splitlines() == [
        "Secret created. It is shown only now. Receivers verify with the secret.",
        f"secret: {TEXT}",
        "id: new",
        "type: hmac",
    ]
    assert server.bodies("POST", PATH) == [{}]


def test_a_new_key_pair_shows_the_public_key(server: ScriptedServer) -> None:
    server.answer("POST", PATH, PUBLIC, 201)
    lines = invoke("secrets", "create", "orders", "--type", "ed25519").stdout.splitlines()
    assert lines[0].endswith("Receivers verify with the public key.")
    assert lines[-1] == "public key: whpk_AAAA"
    assert server.bodies("POST", PATH) == [{"type": "ed25519"}]


@pytest.mark.parametrize("command", ["create", "rotate"])
def test_a_new_secret_as_json_is_the_servers_answer(server: ScriptedServer, command: str) -> None:
    server.answer("POST", PATH, NEW, 201)
    result = invoke("secrets", command, "orders", "--json")
    assert json.loads(result.stdout) == NEW


def test_a_rotation_tells_how_long_the_others_sign(server: ScriptedServer) -> None:
    configured = {**OLD, "id": "configured-1", "createdAt": None}
    expiring = {**OLD, "expiresAt": "2030-01-02T00:00:00Z"}
    other_type = {**PUBLIC, "id": "public"}
    del other_type["secret"]
    server.answer("POST", PATH, NEW, 201)
    server.answer("GET", PATH, {"secrets": [configured, expiring, {**NEW}, other_type]})
    lines = invoke("secrets", "rotate", "orders").stdout.splitlines()
    assert lines[1] == f"secret: {TEXT}"
    assert lines[4:] == [
        "configured-1 goes on signing: WEBHOOK_SECRETS has it.",
        "old signs until 2030-01-02T00:00:00Z.",
    ]
    assert server.bodies("POST", PATH) == [{"expireOthersAfter": "24h"}]


@pytest.mark.parametrize(("given", "sent"), [("0s", "0s"), ("90m", "90m")])
def test_the_overlap_is_given(server: ScriptedServer, given: str, sent: str) -> None:
    server.answer("POST", PATH, NEW, 201)
    server.answer("GET", PATH, {"secrets": []})
    assert invoke("secrets", "rotate", "orders", "--overlap", given).exit_code == 0
    assert server.bodies("POST", PATH) == [{"expireOthersAfter": sent}]


def test_the_secret_is_shown_even_if_the_list_fails(server: ScriptedServer) -> None:
    server.answer("POST", PATH, NEW, 201)
    server.answer("GET", PATH, refusal("INTERNAL_ERROR", "internal error"), 500)
    result = invoke("secrets", "rotate", "orders")
    assert TEXT in result.stdout
    assert result.exit_code == 1


def test_secrets_are_listed_without_their_texts(server: ScriptedServer) -> None:
    listed = [{**OLD, "id": "configured-1", "createdAt": None}, {**OLD, "expiresAt": "2030"}, OLD]
    server.answer("GET", PATH, {"secrets": listed})
    lines = invoke("secrets", "list", "orders").stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    assert rows[0] == ["id", "type", "created", "expires", "public key"]
    assert [(row[0], row[3]) for row in rows[1:]] == [
        ("configured-1", "configured"),
        ("old", "2030"),
        ("old", "never"),
    ]


def test_a_namespace_without_secrets_says_what_that_means(server: ScriptedServer) -> None:
    server.answer("GET", PATH, {"secrets": []})
    assert "are not signed" in invoke("secrets", "list", "orders").stdout


def test_a_secret_is_revoked(server: ScriptedServer) -> None:
    server.answer("DELETE", f"{PATH}/a b", None, 204)
    assert invoke("secrets", "revoke", "orders", "a b").stdout == "Secret a b revoked.\n"
    assert server.requests[0].url.raw_path == b"/api/v1/namespaces/orders/secrets/a%20b"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("expireOthersAfter must be from 0s to 30d", "--overlap must be from 0s to 30d"),
        (
            "type is needed: the namespace has secrets of both types",
            "--type is needed: the namespace has secrets of both types",
        ),
        (
            "namespace 'orders' has 10 secrets: revoke one first",
            "namespace 'orders' has 10 secrets: revoke one first",
        ),
    ],
)
def test_refusals_name_the_options(server: ScriptedServer, said: str, shown: str) -> None:
    server.answer("POST", PATH, refusal("INVALID_INPUT", said), 400)
    result = invoke("secrets", "rotate", "orders")
    assert (result.exit_code, result.stderr) == (1, f"{shown}\n")


def test_a_duration_is_checked_before_anything_is_sent(server: ScriptedServer) -> None:
    result = invoke("secrets", "rotate", "orders", "--overlap", "soon")
    assert result.exit_code == 2
    assert result.stderr.startswith("--overlap: must be a duration")
    assert not server.requests
