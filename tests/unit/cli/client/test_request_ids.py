"""Commands show the id of a request if the service is to blame for its failure."""

from tests.unit.cli.scripted_server import ScriptedServer, invoke, refusal

V1 = ("create", "--id", "order-17", "--url", "http://127.0.0.1/", "--in", "1h")
PLATFORM = ("create", "--url", "http://127.0.0.1/", "--in", "1h")
FAULT = refusal("INTERNAL_ERROR", "internal error")
ID = {"X-Request-Id": "req-17"}


def test_a_fault_of_the_service_is_shown_with_the_id_of_the_request(
    server: ScriptedServer,
) -> None:
    server.answer("POST", "/api/v1/timers", FAULT, 500, ID)
    assert invoke(*V1).stderr == "internal error (request id req-17)\n"
    fault = {"code": 1, "message": "internal error", "data": None}
    server.answer("POST", "/timers", fault, 500, ID)
    assert invoke(*PLATFORM).stderr == "internal error (request id req-17)\n"


def test_a_mistake_of_the_client_is_shown_without_it(server: ScriptedServer) -> None:
    server.answer("POST", "/api/v1/timers", refusal("INVALID_INPUT", "no"), 400, ID)
    assert invoke(*V1).stderr == "no\n"


def test_an_answer_of_an_older_release_has_none(server: ScriptedServer) -> None:
    server.answer("POST", "/api/v1/timers", FAULT, 500)
    assert invoke(*V1).stderr == "internal error\n"
