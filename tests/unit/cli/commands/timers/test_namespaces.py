"""`duetime namespaces` against a scripted server."""

import msgspec
import pytest

from duetime.domain.errors import NamespaceNotEmpty
from tests.unit.cli.scripted_server import (
    OPERATION_ID,
    URL,
    ScriptedServer,
    invoke,
    operation,
    refusal,
    refuse_connection,
)

PATH = "/api/v1/namespaces"
POLICY = {
    "maxRetries": 3,
    "maxRetryAttemptsDuration": "24h",
    "initialInterval": "30s",
    "backoffMultiplier": 2.0,
    "maxInterval": "10m",
}
DEFAULT: dict[str, object] = {
    "name": "default",
    "numShards": 16,
    "retryPolicy": POLICY,
    "retention": None,
    "concurrency": None,
    "maxPayloadBytes": None,
    "maxPending": None,
}
OTHER = {
    "name": "a\tb",
    "numShards": 4,
    "retryPolicy": {**POLICY, "maxRetries": 0},
    "retention": "0s",
    "concurrency": 5,
    "maxPayloadBytes": 1024,
    "maxPending": 100_000,
    "counts": {"pending": 1_234, "executing": 2, "completed": 3, "failed": 4, "canceled": 5},
}


def refused(*arguments: str) -> tuple[int, str]:
    """The exit status, and the single line on standard error."""
    result = invoke("namespaces", *arguments)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return result.exit_code, line


@pytest.mark.parametrize("command", [["namespaces"], ["namespaces", "list"]])
def test_namespaces_are_listed(server: ScriptedServer, command: list[str]) -> None:
    server.answer("GET", PATH, {"namespaces": [DEFAULT, OTHER]})
    lines = invoke(*command).stdout.splitlines()
    assert [line.split("\t") for line in lines] == [
        [
            *("name", "shards", "retention", "concurrency", "payload limit", "pending limit"),
            *("slo", "error budget left", "callback networks", "retries"),
        ],
        [
            *("default", "16", "as the service", "no limit", "as the service", "no limit"),
            *("-", "-", "-", "3 within 24h, after 30s x 2 up to 10m"),
        ],
        [r"a\tb", "4", "forever", "5", "1,024 bytes", "100,000", "-", "-", "-", "none"],
    ]


def test_callback_networks_are_listed_if_a_namespace_has_some(server: ScriptedServer) -> None:
    narrowed = {**OTHER, "callbackNetworks": "public:443"}
    server.answer("GET", PATH, {"namespaces": [DEFAULT, narrowed]})
    heading, *rows = [line.split("\t") for line in invoke("namespaces").stdout.splitlines()]
    shown = [dict(zip(heading, row, strict=True))["callback networks"] for row in rows]
    assert shown == ["-", "public:443"]


def test_objectives_are_listed_with_what_is_left_of_their_budgets(server: ScriptedServer) -> None:
    text = "99.9 % within 100ms over 30d"
    unused = {"attempts": 0, "late": 0, "errorBudgetLeft": 1.0}
    missed = {"attempts": 10_000, "late": 25, "errorBudgetLeft": -1.5}
    namespaces = [
        DEFAULT,
        {**DEFAULT, "name": "new", "slo": text, "sloStatus": unused},
        {**DEFAULT, "name": "slow", "slo": text, "sloStatus": missed},
    ]
    server.answer("GET", PATH, {"namespaces": namespaces})
    heading, *rows = [line.split("\t") for line in invoke("namespaces").stdout.splitlines()]
    shown = [dict(zip(heading, row, strict=True)) for row in rows]
    assert [each["slo"] for each in shown] == ["-", text, text]
    assert [each["error budget left"] for each in shown] == [
        "-",
        "100.0%",
        "-150.0% (25 of 10,000 late)",
    ]


@pytest.mark.parametrize("text", ["none", "None "])
def test_no_networks_are_refused_because_they_could_mean_two_things(
    server: ScriptedServer, text: str
) -> None:
    status, line = refused("set", "a", "--callback-networks", text)
    assert status == 2
    assert line == "--callback-networks: must be a list; default removes the namespace's own list"
    assert not server.requests


def test_a_namespace_that_is_being_deleted_says_so(server: ScriptedServer) -> None:
    server.answer("GET", PATH, {"namespaces": [{**DEFAULT, "name": "a", "deleting": True}]})
    assert invoke("namespaces").stdout.splitlines()[1].startswith("a (being deleted)\t16\t")
    server.answer("GET", f"{PATH}/a", {**DEFAULT, "name": "a", "deleting": True})
    lines = invoke("namespaces", "show", "a").stdout.splitlines()
    assert lines[0] == "name: a (being deleted)"


def test_a_namespace_is_shown_with_its_counts(server: ScriptedServer) -> None:
    server.answer("GET", f"{PATH}/a/b.c %", OTHER)
    lines = invoke("namespaces", "show", "a/b.c %").stdout.splitlines()
    assert [request.url.raw_path for request in server.requests] == [
        b"/api/v1/namespaces/a%2Fb%2Ec%20%25"
    ]
    assert lines[0] == r"name: a\tb"
    assert lines[-5:] == [
        *("pending: 1,234", "executing: 2", "completed: 3", "failed: 4", "canceled: 5")
    ]


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ([], {}),
        (["--shards", "64"], {"numShards": 64}),
        (["--retention", "7d"], {"retention": "7d"}),
        (["--retention", "forever"], {"retention": "0s"}),
        (["--retention", "default"], {"retention": None}),
        (["--concurrency", "100"], {"concurrency": 100}),
        (["--concurrency", "none"], {"concurrency": None}),
        (["--max-payload-bytes", "1024"], {"maxPayloadBytes": 1024}),
        (["--max-payload-bytes", "default"], {"maxPayloadBytes": None}),
        (["--max-pending", "1000"], {"maxPending": 1000}),
        (["--max-pending", "none"], {"maxPending": None}),
        (["--callback-networks", "public:443"], {"callbackNetworks": "public:443"}),
        (["--callback-networks", "default"], {"callbackNetworks": None}),
        (["--slo", "99 % within 1s over 1h"], {"slo": "99 % within 1s over 1h"}),
        (["--slo", "none"], {"slo": None}),
        (
            ["--max-retries", "5", "--initial-interval", "10s"],
            {"retryPolicy": {"maxRetries": 5, "initialInterval": "10s"}},
        ),
    ],
)
def test_only_given_options_are_sent(
    server: ScriptedServer, options: list[str], body: object
) -> None:
    server.answer("GET", f"{PATH}/a", {**DEFAULT, "retention": "9d", "counts": OTHER["counts"]})
    server.answer("PUT", f"{PATH}/a", DEFAULT)
    result = invoke("namespaces", "set", "a", *options)
    assert result.stdout.startswith("Namespace changed.\nname: default\n")
    assert server.bodies("PUT", f"{PATH}/a") == [body]


@pytest.mark.parametrize("command", ["set", "create"])
def test_a_new_namespace_is_not_taken_for_a_changed_one(
    server: ScriptedServer, command: str
) -> None:
    server.answer("GET", f"{PATH}/a", refusal("NAMESPACE_NOT_FOUND", "'a' does not exist"), 404)
    server.answer("PUT", f"{PATH}/a", DEFAULT)
    result = invoke("namespaces", command, "a")
    assert result.stdout.startswith("Namespace created.\nname: default\n")


@pytest.mark.parametrize("command", ["set", "create"])
def test_a_namespace_that_stays_as_it_is_is_not_called_changed(
    server: ScriptedServer, command: str
) -> None:
    server.answer("GET", f"{PATH}/a", {**DEFAULT, "counts": OTHER["counts"]})
    server.answer("PUT", f"{PATH}/a", DEFAULT)
    result = invoke("namespaces", command, "a")
    assert result.stdout.startswith("Namespace unchanged.\nname: default\n")


def test_json_is_the_unchanged_answer(server: ScriptedServer) -> None:
    server.answer("GET", PATH, {"namespaces": [OTHER], "more": 1})
    server.answer("GET", f"{PATH}/a", OTHER)
    server.answer("PUT", f"{PATH}/a", OTHER)
    for command in (["namespaces"], ["namespaces", "list"]):
        listed = invoke(*command, "--json").stdout
        assert msgspec.json.decode(listed) == {"namespaces": [OTHER], "more": 1}
    for change in ("show", "set"):
        assert msgspec.json.decode(invoke("namespaces", change, "a", "--json").stdout) == OTHER


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["set", "a", "--concurrency", "few"], "--concurrency: must be a whole number or none"),
        (["set", "a", "--max-pending", "-1"], "--max-pending: must be a whole number or none"),
        (
            ["set", "a", "--max-payload-bytes", "-1"],
            "--max-payload-bytes: must be a whole number or default",
        ),
        (["set", "a", "--retention", "7 days"], "--retention: must be a duration such as"),
        (
            ["set", "a", "--retention", "none"],
            '--retention: must be a duration such as "7d", or forever, or default',
        ),
        (["show", ""], "NAME: must have 1 to 255 characters"),
        (["set", "x" * 256], "NAME: must have 1 to 255 characters"),
        (["--json", "show", "a"], "--json: must come after `show`"),
    ],
)
def test_wrong_options_are_refused(server: ScriptedServer, arguments: list[str], line: str) -> None:
    code, error = refused(*arguments)
    assert code == 2
    assert error.startswith(line)
    assert server.requests == []


def test_a_refusal_is_reported_in_one_line(server: ScriptedServer) -> None:
    path = f"{PATH}/a"
    server.answer("GET", path, refusal("NAMESPACE_NOT_FOUND", "namespace\n'a' is absent"), 400)
    server.answer("GET", path, {"code": 3, "message": "no such path", "data": None}, 404)
    server.answer(
        "GET",
        path,
        refusal("UNAUTHORIZED", "missing or invalid key: send X-API-Key, or Authorization: Bearer"),
        401,
    )
    server.answer("GET", path, ["hello"])
    assert refused("show", "a") == (1, r"namespace\n'a' is absent")
    assert refused("show", "a") == (1, f"{URL} answered HTTP 404, but not as Duetime does")
    assert refused("show", "a")[1].startswith("no API key found: use --api-key")
    assert refused("show", "a") == (1, f"{URL} answered, but not as Duetime does")


def test_a_namespace_is_deleted_after_confirmation(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.cli.terminal.can_ask", lambda: True)
    server.answer("GET", f"{PATH}/orders", {**OTHER, "name": "orders"})
    server.answer("DELETE", f"{PATH}/orders", operation(action="delete-namespace"), status=202)
    kept = invoke("namespaces", "delete", "orders", stdin=b"n\n")
    assert "Delete namespace 'orders' with 1,248 timers? [y/N]" in kept.output
    kept = invoke("namespaces", "delete", "orders", "--force", stdin=b"n\n")
    lost = "with 1,248 timers, 1,234 of them pending, which will never fire?"
    assert f"Delete namespace 'orders' {lost} [y/N]" in kept.output
    assert (kept.exit_code, server.of("DELETE", f"{PATH}/orders")) == (1, [])
    deleted = invoke("namespaces", "delete", "orders", "--force", stdin=b"y\n")
    assert deleted.exit_code == 0
    assert deleted.stdout.endswith("Namespace deleted, with 1,230 timers.\n")
    (request,) = server.of("DELETE", f"{PATH}/orders")
    assert request.url.query == b"force=true"


def test_a_script_has_to_confirm_in_advance(server: ScriptedServer) -> None:
    server.answer("GET", f"{PATH}/orders", {**OTHER, "name": "orders"})
    assert refused("delete", "orders") == (
        2,
        "--yes: is needed because there is no terminal to ask on",
    )


@pytest.mark.parametrize(("status", "exit_code"), [("completed", 0), ("failed", 1)])
def test_the_end_of_a_deletion_is_awaited(
    server: ScriptedServer, status: str, exit_code: int
) -> None:
    running = operation(action="delete-namespace", status="running", finishedAt=None)
    ended = {**running, "status": status, "finishedAt": "2030-01-01T00:00:10Z"}
    server.answer("GET", f"{PATH}/orders", {**OTHER, "name": "orders"})
    server.answer("DELETE", f"{PATH}/orders", running, status=202)
    server.answer("GET", f"/api/v1/operations/{OPERATION_ID}", running)
    server.answer("GET", f"/api/v1/operations/{OPERATION_ID}", ended)
    result = invoke("namespaces", "delete", "orders", "--yes")
    assert result.exit_code == exit_code
    assert ("Namespace deleted" in result.stdout) is (status == "completed")
    assert ("status: failed\n" in result.stdout) is (status == "failed")
    result = invoke("namespaces", "delete", "orders", "--yes", "--json")
    assert msgspec.json.decode(result.stdout) == ended


def test_a_deletion_goes_on_when_a_lost_server_is_back(server: ScriptedServer) -> None:
    running = operation(action="delete-namespace", status="running", finishedAt=None)
    server.answer("GET", f"{PATH}/orders", {**OTHER, "name": "orders"})
    server.answer("DELETE", f"{PATH}/orders", running, status=202)
    server.react("GET", f"/api/v1/operations/{OPERATION_ID}", refuse_connection)
    result = invoke("namespaces", "delete", "orders", "--yes")
    assert (result.exit_code, result.stdout) == (3, "")
    _, *advice = result.stderr.splitlines()
    assert advice == [
        "the operation goes on when the server is back; to see how far it is:",
        f"  duetime operations show {OPERATION_ID}",
    ]


def test_a_refused_deletion_names_the_option(server: ScriptedServer) -> None:
    not_empty = NamespaceNotEmpty("orders", 35_512).message
    server.answer("GET", f"{PATH}/orders", {**OTHER, "name": "orders"})
    server.answer("DELETE", f"{PATH}/orders", refusal("NAMESPACE_NOT_EMPTY", not_empty), 409)
    assert refused("delete", "orders", "--yes") == (
        1,
        "namespace 'orders' has timers that are pending or executing (35,512): cancel them first, "
        "or delete it with --force",
    )
