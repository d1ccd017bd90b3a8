"""`duetime import` and `duetime export` against real servers."""

import asyncio
import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Self

import httpx
import pytest

from tests.polling import PATIENCE_SECONDS, poll
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.command import Cli
from tests.real_server.server_process import DUETIME, ServerProcess

pytestmark = pytest.mark.e2e

LINES = 20_000
"""More than fit into the buffers between the command and the server."""

FAR = "2090-01-01T00:00:00Z"


@pytest.fixture
def shared_cli(shared_server: ServerProcess, tmp_path: Path) -> Cli:
    return Cli(shared_server, tmp_path)


def timer(id: str, **members: object) -> dict[str, object]:
    return {"id": id, "executeAt": FAR, "callbackUrl": "http://127.0.0.1:1/hook", **members}


def ndjson(*timers: object) -> str:
    return "".join(f"{json.dumps(timer)}\n" for timer in timers)


def callbacks_of(lines: str) -> list[dict[str, object]]:
    """The timers of the lines, with retry policies that compare by their number of retries."""
    timers: list[dict[str, object]] = [json.loads(line) for line in lines.splitlines()]
    for timer in timers:
        policy = timer["retryPolicy"]
        assert isinstance(policy, dict)
        timer["retryPolicy"] = policy["maxRetries"]
    return timers


async def test_an_export_can_be_imported(cli: Cli, tmp_path: Path) -> None:
    policy = {"maxRetries": 5, "initialInterval": "1s"}
    rich = timer("a/b ü", payload={"n": 1.10}, retryPolicy=policy, callbackTimeout="5s")
    null = timer("null", payload=None, callbackHeaders={})
    assert (await cli("import", "-", stdin=ndjson(rich, timer("plain"), null))).status == 0
    # An export includes timers of the platform API, with their headers and protocol.
    own = ("--header", "X-A=1", "--metadata", '{"team": "shop"}')
    await cli.data("create", "--url", "http://127.0.0.1:1/", "--at", FAR, *own)
    exported = await cli("export", "--output", "timers.ndjson")
    assert (exported.status, exported.output) == (0, ""), exported.errors
    lines = (tmp_path / "timers.ndjson").read_text()
    assert lines.count("\n") == 4
    assert '{"team":"shop"}' in lines.replace(" ", "")
    here = await cli.data("import", "timers.ndjson")
    assert (here["created"], here["existing"], here["conflicts"]) == (0, 4, 0), here

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with ServerProcess(elsewhere) as other:
        there = Cli(other, tmp_path)
        summary = await there.data("import", "timers.ndjson")
        assert (summary["created"], summary["invalid"]) == (4, 0), summary
        assert callbacks_of((await there("export")).output) == callbacks_of(lines)
        # A second import creates nothing.
        again = await there.data("import", "timers.ndjson")
        assert (again["created"], again["existing"], again["conflicts"]) == (0, 4, 0), again


async def test_imported_timers_of_the_past_fire_at_once(
    shared_cli: Cli, receiver: CallbackReceiver
) -> None:
    past = timer("late", executeAt="2020-01-01T00:00:00Z", callbackUrl=f"{receiver.url}/hook")
    await shared_cli.data("import", "-", stdin=ndjson(past))
    (request,) = await receiver.wait_for(1)
    assert json.loads(request.body)["id"] == "late"


async def test_bad_lines_are_reported_and_the_others_imported(shared_cli: Cli) -> None:
    cli = shared_cli
    lines = ndjson(timer("a"), timer("b")) + "{nope\n\n" + ndjson(timer("c", executeAt=7))
    finished = await cli("import", "-", stdin=lines)
    assert finished.status == 1
    told = finished.output.splitlines()
    assert "created: 2" in told
    assert "invalid: 2" in told
    table = told.index("line\tid\tproblem")
    assert told[table + 1].startswith("3\t\tline is not valid JSON: ")
    assert told[table + 2 :] == ['5\tc\texecuteAt must be a string such as "2030-01-31T12:00:00Z"']
    different = ndjson(timer("a", payload=1), timer("b"))
    finished = await cli("import", "-", stdin=different)
    assert finished.status == 1
    assert "existing: 1" in finished.output
    assert "conflicts: 1" in finished.output
    assert "1\ta\ta timer with this id exists and differs in payload\n" in finished.output


async def test_an_unknown_namespace_is_reported_at_once(shared_cli: Cli) -> None:
    finished = await shared_cli("import", "-", "--namespace", "nowhere", stdin=ndjson(timer("a")))
    assert (finished.status, finished.output) == (1, "")
    assert finished.errors.count("\n") == 1
    assert "nowhere" in finished.errors


class HeldImport:
    """`duetime import -` whose input the test keeps open."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._process: asyncio.subprocess.Process

    async def feed(self, lines: str) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(lines.encode())
        with suppress(BrokenPipeError, ConnectionResetError):
            await stdin.drain()

    async def end(self, number: signal.Signals | None = None) -> tuple[int | None, str]:
        """End the command by a signal or the end of input. Returns exit status and errors."""
        if number is not None:
            self._process.send_signal(number)
        async with asyncio.timeout(PATIENCE_SECONDS):
            _, errors = await self._process.communicate()
        return self._process.returncode, errors.decode()

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(DUETIME, "import", "-"),
            cwd=self._cli.directory,
            env={"PATH": "/usr/bin:/bin", **self._cli.environ},
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


async def wait_for_timers(api: httpx.AsyncClient) -> None:
    await poll(
        lambda: api.get("/api/v1/timers", params={"limit": 1}),
        lambda answer: bool(answer.json()["timers"]),
    )


@pytest.mark.parametrize("cause", ["ctrl-c", "server killed"])
async def test_an_interrupted_import_is_resumed_by_the_same_command(
    cli: Cli, api: httpx.AsyncClient, server: ServerProcess, cause: str
) -> None:
    lines = ndjson(*(timer(f"timer-{n}") for n in range(LINES)))
    async with HeldImport(cli) as held:
        await held.feed(lines)
        await wait_for_timers(api)
        if cause == "ctrl-c":
            status, errors = await held.end(signal.SIGINT)
            assert status == 1
        else:
            await server.kill()
            await held.feed(lines)
            status, errors = await held.end()
            assert status == 3
            await server.start()
    assert "to resume, run the same command again" in errors
    summary = await cli.data("import", "-", stdin=lines)
    created, existing = summary["created"], summary["existing"]
    assert isinstance(created, int)
    assert isinstance(existing, int)
    assert existing > 0
    assert created + existing == LINES


async def test_an_export_spans_many_pages(cli: Cli) -> None:
    ids = [f"timer-{n:04}" for n in range(2_500)]
    lines = ndjson(*(timer(id, executeAt=f"2090-01-01T00:00:00.{id[6:]}Z") for id in ids))
    assert (await cli.data("import", "-", stdin=lines))["created"] == 2_500
    exported = await cli("export")
    assert exported.errors.startswith("exported 2,500 timers of namespace 'default'")
    assert [json.loads(line)["id"] for line in exported.output.splitlines()] == ids
    part = await cli("export", "--full", "--due-after", "2090-01-01T00:00:00.249Z", "--quiet")
    namespace, *told = [json.loads(line) for line in part.output.splitlines()]
    assert namespace["namespace"]["name"] == "default"
    assert [line["timer"]["id"] for line in told] == ids[2_490:]
    assert part.errors == ""
