"""`duetime endpoints` against a scripted server."""

from typing import Any

from tests.unit.cli.scripted_server import ScriptedServer, invoke, refusal

PATH = "/api/v1/endpoints"
PAUSED = {
    "pausedAt": "2030-01-01T00:00:00Z",
    "pausedBy": "operations",
    "reason": "deploy of 4.2",
}


def endpoint(**more: object) -> dict[str, Any]:
    return {
        "endpoint": "https://app.example.com:443",
        "state": "closed",
        "inFlight": 0,
        "waiting": 12,
        "consecutiveFailures": 0,
        "lastError": None,
        "paused": None,
        "last15Minutes": None,
        **more,
    }


def test_endpoints_are_listed_with_their_figures(server: ScriptedServer) -> None:
    figures = {"attempts": 1_200, "failures": 30, "p50Ms": 8.25, "p99Ms": 2_310.4}
    server.answer("GET", PATH, {"endpoints": [endpoint(last15Minutes=figures)]})
    heading, row = invoke("endpoints", "list").stdout.splitlines()
    assert heading.split() == [
        *("endpoint", "state", "under", "way", "waiting", "failures", "in", "a", "row"),
        *("attempts", "failed", "p50", "p99", "last", "error"),
    ]
    assert row.split()[1:] == ["closed", "0", "12", "0", "1,200", "2.5%", "8.2", "ms", "2.3", "s"]


def test_a_paused_endpoint_says_by_whom_and_why(server: ScriptedServer) -> None:
    server.answer("GET", PATH, {"endpoints": [endpoint(paused=PAUSED, lastError="HTTP 503")]})
    lines = invoke("endpoints").stdout.splitlines()
    assert lines[1].split()[1] == "paused"
    said = " ".join(" ".join(lines[1:]).split())
    for words in ("paused since 2030-01-01T00:00:00Z by operations", "deploy of 4.2", "HTTP 503"):
        assert words in said


def test_the_list_of_an_earlier_release_is_shown(server: ScriptedServer) -> None:
    old = endpoint()
    del old["paused"], old["last15Minutes"]
    server.answer("GET", PATH, {"endpoints": [old]})
    assert "https://app.example.com:443" in invoke("endpoints").stdout


def test_no_endpoints(server: ScriptedServer) -> None:
    server.answer("GET", PATH, {"endpoints": []})
    assert invoke("endpoints").stdout.startswith("No endpoint is being called")


def test_an_endpoint_is_paused(server: ScriptedServer) -> None:
    answer = {"endpoint": "https://app.example.com:443", **PAUSED}
    server.answer("POST", f"{PATH}/pause", answer)
    result = invoke("endpoints", "pause", "app.example.com", "--reason", "deploy of 4.2")
    assert result.stdout == (
        "https://app.example.com:443 is paused since 2030-01-01T00:00:00Z by operations:"
        " deploy of 4.2.\n"
    )
    body = {"endpoint": "app.example.com", "reason": "deploy of 4.2"}
    assert server.bodies("POST", f"{PATH}/pause") == [body]
    assert '"pausedBy": "operations"' in invoke("endpoints", "pause", "a", "--json").stdout


def test_an_endpoint_is_resumed(server: ScriptedServer) -> None:
    server.answer("POST", f"{PATH}/resume", b"", 204)
    assert invoke("endpoints", "resume", "https://app.example.com").stdout == (
        "https://app.example.com resumed.\n"
    )
    assert server.bodies("POST", f"{PATH}/resume") == [{"endpoint": "https://app.example.com"}]


def test_a_refusal_is_told(server: ScriptedServer) -> None:
    said = "https://app.example.com:443 is not paused"
    server.answer("POST", f"{PATH}/resume", refusal("ENDPOINT_NOT_PAUSED", said), 404)
    result = invoke("endpoints", "resume", "app.example.com")
    assert result.exit_code == 1
    assert said in result.stderr
