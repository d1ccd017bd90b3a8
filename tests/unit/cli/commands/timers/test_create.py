"""`duetime create`: what it says about the timer, and which API it uses."""

import pytest

from tests.unit.cli.scripted_server import ScriptedServer, invoke

SUMMARY = {
    "id": "01980000-0000-7000-8000-000000000000",
    "created_at": "2030-01-01T11:00:00Z",
    "execute_at": "2030-01-01T12:00:00Z",
    "callback_type": "http",
    "status": "pending",
    "executed_at": None,
}
URL = "http://127.0.0.1/hook"


@pytest.fixture
def platform(server: ScriptedServer) -> ScriptedServer:
    server.answer("POST", "/timers", {"code": 0, "message": "", "data": SUMMARY}, status=201)
    return server


@pytest.mark.usefixtures("platform")
@pytest.mark.parametrize(
    ("options", "retries"),
    [
        ([], "none"),
        (["--max-retries", "0"], "none"),
        (["--max-retries", "1"], "at most 1 retry; the rest by default"),
        (
            ["--max-retries", "5", "--initial-interval", "1s"],
            "at most 5 retries, the first after 1s; the rest by default",
        ),
    ],
)
def test_a_platform_timer_is_shown_with_its_destination_and_retries(
    options: list[str], retries: str
) -> None:
    lines = invoke("create", "--in", "1h", "--url", URL, *options).stdout.splitlines()
    assert lines[0] == "Timer created."
    assert f"callback.url: {URL}" in lines
    assert f"retry_policy: {retries}" in lines


@pytest.mark.usefixtures("platform")
def test_a_message_is_shown_with_its_subject() -> None:
    lines = invoke(
        *("create", "--in", "1h", "--nats-topic", "events.timer", "--nats-key", "user-7")
    ).stdout.splitlines()
    assert {"callback.topic: events.timer", "callback.key: user-7"} <= set(lines)


@pytest.mark.parametrize("namespace", ["default", "orders"])
@pytest.mark.parametrize("options", [[], ["--callback-timeout", "5s"]])
def test_every_namespace_means_the_v1_api(
    server: ScriptedServer, namespace: str, options: list[str]
) -> None:
    result = invoke("create", "--in", "1h", "--url", URL, "--namespace", namespace, *options)
    assert (result.exit_code, result.stderr) == (2, "--id: is needed with --namespace\n")
    assert not server.requests
