"""`duetime export` against a scripted server."""

import stat
from pathlib import Path

import httpx
import msgspec
import pytest
from msgspec import Raw

from tests.unit.cli.scripted_server import ScriptedServer, invoke, namespace, namespaces, refusal

TIMERS = "/api/v1/timers"
EXPORT = "/api/v1/timers/export"
NAMESPACES = "/api/v1/namespaces"
POLICY = {"maxRetries": 3, "initialInterval": "30s"}


def timer(id: str, **changes: object) -> dict[str, object]:
    return {
        "id": id,
        "namespace": "orders",
        "executeAt": "2030-01-01T00:00:00Z",
        "callbackUrl": "http://127.0.0.1/",
        "callbackProtocol": "answer",
        "payload": {"n": 1},
        "retryPolicy": POLICY,
        "callbackTimeout": "30s",
        "callbackTimeoutSeconds": 30.0,
        "status": "pending",
        "attempts": [],
        **changes,
    }


def created(id: str, **changes: object) -> dict[str, object]:
    """The line that creates that timer."""
    line = timer(id, **changes)
    for name in ("callbackTimeoutSeconds", "status", "attempts"):
        del line[name]
    return line


def page(*timers: object, cursor: str | None = None, **others: object) -> dict[str, object]:
    return {"timers": timers, "nextCursor": cursor, **others}


def decoded(text: str | bytes) -> list[object]:
    return [msgspec.json.decode(line) for line in text.splitlines()]


def test_an_export_follows_all_pages(server: ScriptedServer) -> None:
    server.answer("GET", TIMERS, page(timer("a"), timer("b"), cursor="next="))
    server.answer("GET", TIMERS, page(timer("c")))
    result = invoke(
        *("export", "--namespace", "orders", "--due-after", "2030-01-01T01:00:00+01:00"),
    )
    assert result.exit_code == 0, result.stderr
    assert decoded(result.stdout) == [created("a"), created("b"), created("c")]
    first, second = (dict(request.url.params) for request in server.requests)
    assert first == {
        "namespace": "orders",
        "status": "pending",
        "limit": "1000",
        "dueAfter": "2030-01-01T00:00:00Z",
    }
    assert second == {**first, "cursor": "next="}
    assert result.stderr == "exported 3 timers of namespace 'orders'\n"


def test_all_namespaces_are_exported_one_after_the_other(server: ScriptedServer) -> None:
    server.answer("GET", NAMESPACES, namespaces("default", "orders"))
    server.answer("GET", TIMERS, page(timer("a", namespace="default"), cursor="next="))
    server.answer("GET", TIMERS, page())
    server.answer("GET", TIMERS, page(timer("a"), timer("b")))
    result = invoke("export", "--all-namespaces")
    assert result.exit_code == 0, result.stderr
    expected = [created("a", namespace="default"), created("a"), created("b")]
    assert decoded(result.stdout) == expected
    asked = [request.url.params["namespace"] for request in server.of("GET", TIMERS)]
    assert asked == ["default", "default", "orders"]
    assert result.stderr == "exported 3 timers of all 2 namespaces\n"


def test_an_export_without_a_namespace_says_which_one_it_covers(server: ScriptedServer) -> None:
    result = invoke("export")
    covered = "namespace 'default' (--all-namespaces exports the others too)"
    assert result.stderr == f"exported 0 timers of {covered}\n"


def test_one_namespace_and_all_of_them_contradict_each_other(server: ScriptedServer) -> None:
    result = invoke("export", "--all-namespaces", "--namespace", "orders")
    assert (result.exit_code, server.requests) == (2, [])
    expected = "--namespace / --all-namespaces: give one of them, not both\n"
    assert result.stderr == expected


def test_a_payload_is_exported_as_written_but_on_one_line(server: ScriptedServer) -> None:
    payload = b'{"big": 1180591620717411303424,\n "float": 1.10, "text": "a\\nb"}'
    content = msgspec.json.encode(page(timer("a", payload=msgspec.Raw(payload))))
    server.react("GET", TIMERS, lambda request: httpx.Response(200, content=content))
    (line,) = invoke("export", "--quiet").stdout.splitlines()
    assert '"payload":{"big":1180591620717411303424,"float":1.10,"text":"a\\nb"}' in line


def test_a_missing_payload_and_missing_retries_are_exported_as_such(server: ScriptedServer) -> None:
    server.answer("GET", TIMERS, page(timer("a", payload=None, retryPolicy=None)))
    (line,) = decoded(invoke("export").stdout)
    assert isinstance(line, dict)
    assert "payload" not in line
    # A create without a policy would get the one of the namespace.
    assert line["retryPolicy"] == {"maxRetries": 0}


def test_headers_and_protocol_are_exported(server: ScriptedServer) -> None:
    platform = {"callbackProtocol": "status", "callbackHeaders": {"X-A": "1"}}
    server.answer("GET", TIMERS, page(timer("a", **platform)))
    assert decoded(invoke("export").stdout) == [created("a", **platform)]


@pytest.mark.parametrize("options", [(), ("--full",)])
def test_an_export_without_unreadable_timers_says_that_it_is_incomplete(
    server: ScriptedServer, options: tuple[str, ...]
) -> None:
    path = EXPORT if options else TIMERS
    server.answer("GET", f"{NAMESPACES}/orders", namespace("orders"))
    server.answer("GET", path, page(timer("a"), cursor="next=", unreadable=1_200))
    server.answer("GET", path, page(cursor="after="))
    server.answer("GET", path, page(timer("b"), unreadable=34))
    result = invoke("export", "--namespace", "orders", *options)
    assert result.exit_code == 1
    assert result.stderr == (
        "exported 2 timers of namespace 'orders'\n"
        "incomplete: 1,234 timers could not be read by the server; `duetime audit` says which\n"
    )


def test_timers_that_cannot_be_imported_are_counted_and_reported(server: ScriptedServer) -> None:
    other = timer("b", callbackUrl=None)
    server.answer("GET", TIMERS, page(timer("a"), other))
    result = invoke("export", "--status", "all")
    assert result.exit_code == 1
    assert decoded(result.stdout) == [created("a")]
    assert result.stderr.splitlines()[-1].startswith("left out 1 timer whose callbacks are")
    assert "status" not in server.requests[0].url.params


def test_a_full_export_has_the_namespaces_first_and_timers_as_the_server_wrote_them(
    server: ScriptedServer,
) -> None:
    server.answer("GET", NAMESPACES, namespaces("default", "orders"))
    server.answer("GET", EXPORT, page(Raw(b'{"id":"a","n":1.10}'), cursor="next="))
    server.answer("GET", EXPORT, page())
    server.answer("GET", EXPORT, page(Raw(b'{"id":"b"}')))
    result = invoke("export", "--all-namespaces", "--full")
    assert result.exit_code == 0, result.stderr
    *first, third, fourth = result.stdout.splitlines()
    listed = namespaces("default", "orders")["namespaces"]
    assert isinstance(listed, list)
    assert decoded("\n".join(first)) == [{"full": 1, "namespace": each} for each in listed]
    assert third == '{"full":1,"timer":{"id":"a","n":1.10}}'
    assert fourth == '{"full":1,"timer":{"id":"b"}}'
    queries = [dict(request.url.params) for request in server.of("GET", EXPORT)]
    assert [query["namespace"] for query in queries] == ["default", "default", "orders"]
    assert not any("status" in query for query in queries)
    assert result.stderr == "exported 2 timers of all 2 namespaces\n"


def test_a_full_export_of_one_namespace_has_its_options(server: ScriptedServer) -> None:
    counts = dict.fromkeys(("pending", "executing", "completed", "failed", "canceled"), 0)
    server.answer("GET", f"{NAMESPACES}/orders", {"name": "orders", "counts": counts})
    server.answer("GET", EXPORT, page(Raw(b'{"id":"a"}')))
    result = invoke("export", "--namespace", "orders", "--full", "--status", "failed")
    assert result.stdout == (
        '{"full":1,"namespace":{"name":"orders"}}\n{"full":1,"timer":{"id":"a"}}\n'
    )
    assert server.of("GET", EXPORT)[0].url.params["status"] == "failed"


def test_only_a_complete_export_replaces_a_file(server: ScriptedServer, tmp_path: Path) -> None:
    path = tmp_path / "timers.ndjson"
    path.write_text("before")
    server.answer("GET", TIMERS, page(timer("a"), cursor="next"))
    server.answer("GET", TIMERS, refusal("INTERNAL_ERROR", "internal error"), status=500)
    result = invoke("export", "--output", str(path))
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "internal error\n")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_is_written_to_a_file(server: ScriptedServer, tmp_path: Path) -> None:
    server.answer("GET", TIMERS, page(timer("a")))
    path = tmp_path / "timers.ndjson"
    result = invoke("export", "--output", str(path))
    assert (result.exit_code, result.stdout) == (0, "")
    assert decoded(path.read_bytes()) == [created("a")]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "problem"), [("no/such", "No such file"), (".", "Is a dir")])
def test_an_unwritable_output_is_reported(server: ScriptedServer, name: str, problem: str) -> None:
    result = invoke("export", "--output", name)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"--output: {name}: {problem}")
    assert len(result.stderr.splitlines()) == 1


def test_only_its_owner_can_read_an_export_unless_others_could_before(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.answer("GET", TIMERS, page(timer("a", headers={"Authorization": "Bearer secret"})))
    output = tmp_path / "timers.ndjson"
    assert invoke("export", "--output", str(output)).exit_code == 0
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    output.chmod(0o640)
    assert invoke("export", "--output", str(output)).exit_code == 0
    assert stat.S_IMODE(output.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("path", "option", "hidden"),
    [
        (TIMERS, (), {"callbackHeaders": {"X-Key": "[redacted]"}}),
        (TIMERS, (), {"callbackUrl": "http://a:[redacted]@127.0.0.1/"}),
        (EXPORT, ("--full",), {"callback": {"headers": {"X-Key": "[redacted]"}}}),
        (EXPORT, ("--full",), {"callback": {"url": "http://[redacted]@127.0.0.1/"}}),
    ],
)
def test_an_export_says_that_it_lacks_secrets(
    server: ScriptedServer, path: str, option: tuple[str, ...], hidden: dict[str, object]
) -> None:
    server.answer("GET", f"{NAMESPACES}/default", namespace("default"))
    others = (timer("b", payload="[redacted]"), timer("c", callback={"payload": "[redacted]"}))
    server.answer("GET", path, page(timer("a", **hidden), *others))
    result = invoke("export", *option, "--quiet")
    assert result.exit_code == 0
    assert result.stderr == (
        "without the secrets of 1 timer: another server needs an export with --with-secrets\n"
    )
    assert "secrets" not in server.requests[-1].url.params


@pytest.mark.parametrize(
    ("command", "path", "answer"),
    [
        (("export",), TIMERS, page(timer("a"))),
        (("list", "--namespace", "orders"), TIMERS, page(timer("a"))),
        (("get", "a"), f"{TIMERS}/default/a", timer("a")),
    ],
)
def test_secrets_are_asked_for(
    server: ScriptedServer, command: tuple[str, ...], path: str, answer: object
) -> None:
    server.answer("GET", path, answer)
    result = invoke(*command, "--with-secrets")
    assert result.exit_code == 0, result.stderr
    assert server.requests[-1].url.params["secrets"] == "true"
