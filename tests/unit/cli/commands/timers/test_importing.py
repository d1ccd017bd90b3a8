"""`duetime import` against a scripted server."""

import tracemalloc
from pathlib import Path

import httpx
import msgspec
import pytest

from duetime.cli.commands.timers.importing import CHUNK_BYTES
from tests.unit.cli.scripted_server import ScriptedServer, invoke, refusal

IMPORT = "/api/v1/timers/import"
LINE = b'{"id":"a","executeAt":"2030-01-01T00:00:00Z","callbackUrl":"http://127.0.0.1/"}\n'


def summary(created: int, **others: object) -> dict[str, object]:
    counts = {"lines": created, "existing": 0, "conflicts": 0, "invalid": 0, "errors": []}
    return {"created": created, **counts, **others}


def test_a_file_is_sent_unchanged(server: ScriptedServer, tmp_path: Path) -> None:
    content = LINE * 5_000
    (tmp_path / "timers.ndjson").write_bytes(content)
    received: list[bytes] = []

    def read(request: httpx.Request) -> httpx.Response:
        received.extend(request.stream)  # type: ignore[arg-type]
        return httpx.Response(200, content=msgspec.json.encode(summary(5_000)))

    server.react("POST", IMPORT, read)
    result = invoke("import", "timers.ndjson")
    assert result.exit_code == 0, result.stderr
    assert b"".join(received) == content
    assert max(map(len, received)) <= CHUNK_BYTES
    (request,) = server.of("POST", IMPORT)
    assert request.headers["content-type"] == "application/x-ndjson"
    assert request.headers["transfer-encoding"] == "chunked"
    assert result.stdout.splitlines()[1:] == [
        "created: 5,000",
        "existing: 0",
        "conflicts: 0",
        "invalid: 0",
    ]


@pytest.mark.parametrize(
    ("timers", "words"),
    [
        (
            {"pending": 1_200, "failed": 3, "canceled": 1},
            "1,200 pending, 3 failed and 1 canceled timers",
        ),
        ({"completed": 2}, "2 completed timers"),
        ({"pending": 1}, "1 pending timer"),
        ({}, "no timers"),
    ],
)
def test_restored_timers_are_counted_by_status(
    server: ScriptedServer, timers: dict[str, int], words: str
) -> None:
    none = dict.fromkeys(("pending", "executing", "completed", "failed", "canceled"), 0)
    restored = {"namespaces": 2, "timers": none | timers}
    server.answer("POST", IMPORT, summary(sum(timers.values()), restored=restored))
    result = invoke("import", "-", stdin=LINE)
    assert result.stdout.splitlines()[-1] == f"restored: 2 namespaces, {words}"


@pytest.mark.parametrize(
    ("existing", "words"),
    [
        (4, "nothing: 4 namespaces and 6 timers were there already"),
        (3, "1 namespace; 3 namespaces and 6 timers were there already"),
    ],
)
def test_a_copy_that_was_restored_before_is_said_to_be_there(
    server: ScriptedServer, existing: int, words: str
) -> None:
    none = dict.fromkeys(("pending", "executing", "completed", "failed", "canceled"), 0)
    restored = {"namespaces": 4, "existingNamespaces": existing, "timers": none}
    server.answer("POST", IMPORT, summary(0, restored=restored, existing=6))
    result = invoke("import", "-", stdin=LINE)
    assert result.stdout.splitlines()[-1] == f"restored: {words}"


def test_memory_does_not_grow_with_the_file(server: ScriptedServer, tmp_path: Path) -> None:
    path = tmp_path / "large.ndjson"
    path.write_bytes(LINE * 100_000)
    assert path.stat().st_size > 50 * CHUNK_BYTES

    def drain(request: httpx.Request) -> httpx.Response:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in request.stream:  # type: ignore[union-attr]
            pass
        assert tracemalloc.get_traced_memory()[1] - before < 10 * CHUNK_BYTES
        return httpx.Response(200, content=msgspec.json.encode(summary(100_000)))

    server.react("POST", IMPORT, drain)
    tracemalloc.start()
    try:
        assert invoke("import", str(path)).exit_code == 0
    finally:
        tracemalloc.stop()


def test_an_import_reads_standard_input_and_passes_the_namespace(server: ScriptedServer) -> None:
    received = []

    def read(request: httpx.Request) -> httpx.Response:
        received.append(request.read())
        return httpx.Response(200, content=msgspec.json.encode(summary(1)))

    server.react("POST", IMPORT, read)
    result = invoke("import", "-", "--namespace", "a&b", "--json", stdin=LINE)
    assert result.exit_code == 0, result.stderr
    assert received == [LINE]
    assert server.of("POST", IMPORT)[0].url.params["namespace"] == "a&b"
    assert msgspec.json.decode(result.stdout) == summary(1)


def test_lines_that_were_not_imported_are_listed(server: ScriptedServer) -> None:
    invalid = {"error": "INVALID_INPUT", "message": "id must be a string"}
    errors: list[dict[str, object]] = [
        {"line": n, **invalid, "details": {"field": "id"}} for n in range(3, 103)
    ]
    problem = "a timer with this id exists and differs in executeAt, payload"
    errors[1] |= {"namespace": "default", "id": "a\tb", "message": problem}
    errors[2]["id"] = "x" * 255
    server.answer("POST", IMPORT, summary(2, lines=204, conflicts=2, invalid=200, errors=errors))
    result = invoke("import", "-", stdin=LINE)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "conflicts: 2" in lines
    assert "invalid: 200" in lines
    assert lines[6:10] == [
        "line\tid\tproblem",
        "3\t\tid must be a string",
        f"4\ta\\tb\t{problem}",
        f"5\t{'x' * 255}\tid must be a string",
    ]
    assert lines[-1] == "and 192 more; --json shows the first 100"


@pytest.mark.parametrize(
    ("invalid", "last"), [(10, "12\t\tno"), (11, "and 1 more; --json shows all of them")]
)
def test_errors_that_are_not_shown_are_counted(
    server: ScriptedServer, invalid: int, last: str
) -> None:
    error = {"error": "INVALID_INPUT", "message": "no", "details": {}}
    errors = [{"line": n, **error} for n in range(3, 3 + invalid)]
    server.answer("POST", IMPORT, summary(2, lines=99, invalid=invalid, errors=errors))
    assert invoke("import", "-", stdin=LINE).stdout.splitlines()[-1] == last


@pytest.mark.parametrize(("name", "problem"), [("missing", "No such file"), (".", "Is a dir")])
def test_an_unreadable_file_is_reported(server: ScriptedServer, name: str, problem: str) -> None:
    result = invoke("import", name)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"FILE: {name}: {problem}")
    assert not server.requests


def test_a_wrong_namespace_is_reported_before_anything_is_sent(server: ScriptedServer) -> None:
    problem = refusal("NAMESPACE_NOT_FOUND", "there is no namespace 'nope'")
    server.answer("GET", "/api/v1/timers", problem, status=400)
    result = invoke("import", "-", "--namespace", "nope", stdin=LINE)
    assert (result.exit_code, result.stderr) == (1, "there is no namespace 'nope'\n")
    assert not server.of("POST", IMPORT)


@pytest.mark.parametrize(
    ("end", "code", "reason"),
    [
        (httpx.ReadError("cut"), 3, "the exchange with http://127.0.0.1:1 failed: cut\n"),
        (httpx.WriteTimeout("slow"), 3, "http://127.0.0.1:1 did not answer within 60 s\n"),
        (KeyboardInterrupt(), 1, "interrupted; "),
    ],
)
def test_an_import_that_was_cut_explains_how_to_resume(
    server: ScriptedServer, end: BaseException, code: int, reason: str
) -> None:
    def break_off(request: httpx.Request) -> httpx.Response:
        request.read()
        raise end

    server.react("POST", IMPORT, break_off)
    result = invoke("import", "-", stdin=LINE * 3)
    assert result.exit_code == code
    assert result.stderr == (
        f"{reason}about 3 lines were sent; to resume, run the same command again: "
        "timers that were already created are recognised by their ids\n"
    )
