"""URLs of servers that were copied with more than the server in them."""

import pytest
from typer.testing import CliRunner, Result

from duetime.cli.main import command_line
from tests.unit.cli.scripted_server import ScriptedServer


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command_line(), arguments)


@pytest.mark.parametrize("path", ["/api/v1", "/api/v1/", "/api/v1/timers"])
@pytest.mark.parametrize("command", [["list"], ["list", "--namespace", "a"], ["health"]])
def test_a_path_of_the_api_is_refused(
    server: ScriptedServer, command: list[str], path: str
) -> None:
    result = invoke(*command, "--server", f"http://127.0.0.1:8300{path}")
    assert result.exit_code == 2
    assert result.stderr == (
        f"http://127.0.0.1:8300{path.rstrip('/')}: give the URL of the server without the path, "
        "http://127.0.0.1:8300\n"
    )
    assert not server.requests


@pytest.mark.parametrize("url", ["http://127.0.0.1:8300/timers/", "http://api/v1"])
def test_the_path_of_a_proxy_is_kept(server: ScriptedServer, url: str) -> None:
    invoke("namespaces", "show", "a", "--server", url)
    (request,) = server.requests
    assert str(request.url) == f"{url.rstrip('/')}/api/v1/namespaces/a"


def test_another_path_is_mentioned_if_the_answer_is_not_of_duetime(server: ScriptedServer) -> None:
    server.answer("GET", "/docs/api/v1/namespaces", ["hello"], 404)
    result = invoke("namespaces", "--server", "http://127.0.0.1:8300/docs")
    assert result.exit_code == 1
    assert result.stderr == (
        "http://127.0.0.1:8300/docs answered HTTP 404, but not as Duetime does; "
        "give the URL of the server without a path, unless a proxy needs it\n"
    )
