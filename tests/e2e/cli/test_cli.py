"""The command line against a real server and a real receiver."""

import json
import os
import shutil
import signal
from pathlib import Path

import httpx
import pytest

from duetime.cli.output.dev_welcome import DevAddresses, curl_command
from duetime.domain.instants import format_instant
from duetime.listener import bind_next_free
from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.command import Cli, Command, run_command, run_shell
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms

pytestmark = pytest.mark.e2e

UNKNOWN_ID = "01980000-0000-7000-8000-000000000000"


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


async def test_a_created_timer_arrives_and_is_completed(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    server = ServerProcess(tmp_path)
    await server.start()
    cli = Cli(server, tmp_path)
    execute_at = format_instant(in_ms(2_000))
    created = await cli.data("create", "--url", f"{receiver.url}/hook", "--at", execute_at)
    assert created["status"] == "pending"
    (request,) = await receiver.wait_for(1)
    assert json.loads(request.body) == {"execute_at": execute_at}
    assert await server.stop() == 0
    async with server:
        assert (await cli.data("get", str(created["id"])))["status"] == "completed"


async def test_create_sends_every_option(cli: Cli, receiver: CallbackReceiver) -> None:
    created = await cli.data(
        *("create", "--url", f"{receiver.url}/hook", "--at", "2090-01-01T01:00:00+01:00"),
        *("--payload", "-", "--header", "X-Tag=a=b", "--metadata", '{"order": 7}'),
        *("--max-retries", "2", "--initial-interval", "1s", "--idempotency-key", "once"),
        *("--max-interval", "1m", "--backoff-multiplier", "1.5", "--max-duration", "2h"),
        stdin='{"n": 1}',
    )
    timer = await cli.data("get", str(created["id"]))
    assert timer["execute_at"] == "2090-01-01T00:00:00Z"
    assert timer["metadata"] == {"order": 7}
    assert timer["retry_policy"] == {
        "max_retries": 2,
        "max_attempts": 3,
        "max_retry_attempts_duration": "2h",
        "max_attempts_duration": "2h",
        "initial_interval": "1s",
        "backoff_multiplier": 1.5,
        "max_interval": "1m",
    }
    callback = timer["callback_config"]
    assert isinstance(callback, dict)
    assert callback["payload"] == {"n": 1}
    assert callback["headers"] == {"X-Tag": "a=b"}


async def test_with_a_namespace_json_has_the_members_of_v1(
    cli: Cli, receiver: CallbackReceiver
) -> None:
    created = await cli.data("create", "--url", receiver.url, "--at", "2090-01-01T00:00:00Z")
    id = str(created["id"])
    for command in (("get", id), ("update", id, "--in", "1h"), ("cancel", id)):
        timer = await cli.data(*command, "--namespace", "default")
        assert timer["callbackUrl"] == receiver.url
    listed = await cli.data("list", "--namespace", "default", "--limit", "1")
    assert isinstance(listed["timers"], list)
    assert "executeAt" in listed["timers"][0]


async def test_a_payload_arrives_as_it_was_written(cli: Cli, receiver: CallbackReceiver) -> None:
    payload = '{"n": 0.10000000000000000555, "n":1e400}'
    finished = await cli("create", "--url", receiver.url, "--in", "1s", "--payload", payload)
    assert finished.status == 0, finished.errors
    (request,) = await receiver.wait_for(1)
    assert request.body == payload.encode()


async def test_retries_follow_the_options(cli: Cli, receiver: CallbackReceiver) -> None:
    receiver.script("/hook", Answer(500), Answer(200))
    url = f"{receiver.url}/hook"
    retries = ("--max-retries", "3", "--initial-interval", "100ms")
    await cli.data("create", "--url", url, "--in", "1s", *retries)
    requests = await receiver.wait_for(2)
    assert [request.headers["timer-attempt"] for request in requests] == ["1", "2"]


async def test_update_changes_only_the_given_fields(cli: Cli, receiver: CallbackReceiver) -> None:
    url = f"{receiver.url}/hook"
    at = ("--at", "2089-01-01T00:00:00Z")
    created = await cli.data("create", "--url", url, *at, "--header", "X-A=1")
    id = str(created["id"])
    finished = await cli("update", id, "--at", "2090-01-01T00:00:00Z", "--header", "x-b=2")
    assert finished.output.startswith("Timer updated.")
    timer = await cli.data("get", id)
    assert timer["execute_at"] == "2090-01-01T00:00:00Z"
    callback = timer["callback_config"]
    assert isinstance(callback, dict)
    assert callback["url"] == url
    assert callback["headers"] == {"X-A": "1", "x-b": "2"}
    # The default payload names the instant, and follows it.
    assert callback["payload"] == {"execute_at": "2090-01-01T00:00:00Z"}


async def test_update_changes_one_part_of_a_retry_policy(
    cli: Cli, receiver: CallbackReceiver
) -> None:
    created = await cli.data("create", "--url", receiver.url, "--in", "1h", "--max-retries", "7")
    id = str(created["id"])
    await cli.data("update", id, "--max-interval", "45s")
    policy = (await cli.data("get", id))["retry_policy"]
    assert isinstance(policy, dict)
    assert (policy["max_retries"], policy["max_interval"]) == (7, "45s")


async def test_a_payload_can_be_absent_null_or_removed(
    cli: Cli, receiver: CallbackReceiver
) -> None:
    await cli.data("create", "--url", receiver.url, "--in", "1s")
    (request,) = await receiver.wait_for(1)
    assert request.body == b""
    created = await cli.data("create", "--url", receiver.url, "--in", "1h", "--payload", "null")
    id = str(created["id"])
    assert (await cli.data("get", id))["callback_config"] == {
        "type": "http",
        "url": receiver.url,
        "payload": None,
    }
    await cli.data("update", id, "--no-payload", "--in", "2h")
    assert (await cli.data("get", id))["callback_config"] == {"type": "http", "url": receiver.url}


async def test_cancel_is_final(cli: Cli, receiver: CallbackReceiver) -> None:
    created = await cli.data("create", "--url", receiver.url, "--in", "1h")
    id = str(created["id"])
    finished = await cli("cancel", id)
    assert finished.status == 0
    assert finished.output.startswith(f"Timer {id} canceled.")
    finished = await cli("update", id, "--in", "2h")
    assert finished == (1, "", "cannot update timer with status 'canceled'\n")


async def test_list_shows_pages(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, server.client() as api:
        await check_pages(Cli(server, tmp_path), api)


async def check_pages(cli: Cli, api: httpx.AsyncClient) -> None:
    ids = [
        await create_timer(api, "http://127.0.0.1:9/", in_ms(hours * 3_600_000 + 30_000))
        for hours in (3, 1, 2)
    ]
    order = ("--sort", "execute_at", "--order", "asc")
    page = await cli.data("list", *order, "--limit", "2")
    timers = page["timers"]
    assert isinstance(timers, list)
    assert [timer["id"] for timer in timers] == [ids[1], ids[2]]
    assert page["total"] == 3
    text = (await cli("list", *order, "--offset", "2")).output
    assert ids[0] in text
    assert "in 3 h" in text
    assert "3 to 3 of 3 timers" in text
    failed = (await cli("list", "--status", "failed")).output
    assert failed.startswith("0 failed timers of namespace 'default'")


async def test_a_refusal_is_one_line(cli: Cli) -> None:
    finished = await cli("get", UNKNOWN_ID)
    assert (finished.status, finished.output) == (1, "")
    assert finished.errors.startswith(f"timer not found: '{UNKNOWN_ID}' in namespace 'default' at ")
    refused = await cli("list", DUETIME_API_KEY="wrong-key")
    assert (refused.status, refused.output) == (1, "")
    assert refused.errors.startswith("the API key from DUETIME_API_KEY was not accepted by http")
    refused = await cli("list", DUETIME_API_KEY="")
    assert (refused.status, refused.output) == (1, "")
    assert refused.errors.startswith("no API key found: ")
    assert refused.errors.count("\n") == 1
    past = await cli("create", "--url", "http://127.0.0.1/", "--at", "2020-01-01T00:00:00Z")
    assert (past.status, past.output) == (1, "")
    assert past.errors.startswith("--at must be ")
    assert past.errors.count("\n") == 1


async def test_the_key_is_found_in_dotenv(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"API_KEY={API_KEY}\nDUETIME_URL={server.url}\n")
    assert (await run_command("list", directory=tmp_path)).status == 0


async def test_health_is_shown_as_json_and_as_lines(cli: Cli, server: ServerProcess) -> None:
    assert (await cli.data("health"))["status"] == "up"
    text = (await cli("health")).output
    assert text.startswith(f"healthy\nserver: {server.url}\nstatus: up\n")


async def test_dev_shows_a_timer_arrive_and_stops_politely(tmp_path: Path) -> None:
    with bind_next_free("127.0.0.1", 18_080) as taken:
        port: int = taken.getsockname()[1]
        async with Command("dev", directory=tmp_path, PORT=str(port)) as command:
            assert f"Port {port} is taken; using " in await command.line()
            url = (await command.line(containing="API:")).split()[-1]
            key = (await command.line(containing="API key:")).split()[-1]
            assert key == (tmp_path / ".duetime-dev-key").read_text().strip()
            receiver_url = (await command.line(containing="Receiver:")).split()[1]
            arrival = await command.line(containing="demo timer arrived")
            assert float(arrival.split()[4]) >= 0
            # The client finds the key in the directory.
            create = ("create", "--in", "2s", "--url", f"{receiver_url}/hello", "--server", url)
            created = await run_command(*create, directory=tmp_path)
            assert created.status == 0, created.errors
            assert "POST /hello" in await command.line(containing="/hello")
            assert await command.end(signal.SIGINT) == 0
            assert command.lines[-1] == "Stopped. Your timers are kept in duetime-dev.db."
            assert command.errors == ""


async def test_a_second_dev_on_the_same_database_is_refused(tmp_path: Path) -> None:
    async with Command("dev", "--port", "18180", directory=tmp_path) as command:
        await command.line(containing="API:")
        second = await run_command("dev", "--port", "18180", directory=tmp_path)
        assert (second.status, second.output) == (1, "")
        assert "is in use by another duetime process" in second.errors
        assert await command.end(signal.SIGINT) == 0


@pytest.mark.skipif(shutil.which("curl") is None and not os.environ.get("CI"), reason="needs curl")
async def test_the_printed_curl_command_works(
    server: ServerProcess, receiver: CallbackReceiver, tmp_path: Path
) -> None:
    addresses = DevAddresses(
        api_url=server.url,
        ui_link=f"{server.url}/ui",
        receiver_url=receiver.url,
        api_key=API_KEY,
        db_path=tmp_path,
    )
    script = curl_command(addresses).replace('"10s"', '"1s"')
    timer = json.loads(await run_shell(script, tmp_path))
    assert timer["status"] == "pending"
    # The first command that a visitor copies makes a timer that is retried.
    assert timer["retryPolicy"]["maxRetries"] > 0
    (request,) = await receiver.wait_for(1)
    callback = json.loads(request.body)
    assert (callback["id"], callback["payload"]) == (timer["id"], {"hello": "world"})
