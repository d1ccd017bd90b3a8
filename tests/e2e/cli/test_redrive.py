"""`duetime redrive`, and other commands on timers of the v1 API, against a real server."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.real_server.callback_receiver import Answer, CallbackReceiver
from tests.real_server.command import Cli
from tests.real_server.server_process import LogEntry, ServerProcess

pytestmark = pytest.mark.e2e

COMPLETED = Answer(200, b'{"ok": true}')


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


def is_of(id: str, entry: LogEntry) -> bool:
    return entry["id"] == id


async def create_failing(
    cli: Cli, server: ServerProcess, receiver: CallbackReceiver, *ids: str
) -> None:
    """Timers whose only attempt is refused with 503."""
    receiver.reaction = Answer(503)
    seen = len(server.logs)
    timers = [
        {
            "id": id,
            # An import accepts instants of the past, which are due at once.
            "executeAt": "2020-01-01T00:00:00Z",
            "callbackUrl": f"{receiver.url}/{id}",
            "retryPolicy": {"maxRetries": 0},
        }
        for id in ids
    ]
    await cli.data("import", "-", stdin="\n".join(map(json.dumps, timers)))
    for id in ids:
        await server.wait_for_log("timer.failed", after=seen, matches=partial(is_of, id))
    receiver.reaction = COMPLETED


async def test_a_redriven_timer_fires_once_more(
    cli: Cli, server: ServerProcess, receiver: CallbackReceiver
) -> None:
    await create_failing(cli, server, receiver, "fails")
    finished = await cli("redrive", "fails", "unknown")
    assert (finished.status, finished.output) == (1, "fails: redriven\n")
    assert finished.errors == "unknown: timer not found\n"
    first, second = await receiver.wait_for(2)
    assert second.headers["webhook-id"] != first.headers["webhook-id"]
    assert second.headers["timer-attempt"] == "1"
    again = await cli("redrive", "fails")
    assert again.status == 1
    assert again.errors.startswith("fails: cannot redrive timer with status '")


async def test_timers_are_chosen_by_their_errors(
    tmp_path: Path, receiver: CallbackReceiver
) -> None:
    async with ServerProcess(tmp_path) as server:
        await check_choosing(Cli(server, tmp_path), server, receiver)


async def check_choosing(cli: Cli, server: ServerProcess, receiver: CallbackReceiver) -> None:
    await create_failing(cli, server, receiver, "a", "b", "c")
    told = await cli("redrive", "--error-contains", "no such error", "--yes")
    assert told.output == "0 failed timers of namespace 'default': nothing was redriven\n"
    told = await cli("redrive", "--error-contains", "503", "--dry-run")
    assert told.output == "3 failed timers of namespace 'default' would be redriven (dry run)\n"
    assert (await cli("redrive", "--all")).status == 2
    told = await cli("redrive", "--error-contains", "503", "--yes")
    assert (told.status, told.output) == (0, "redriven: 3 timers\n")
    await receiver.wait_for(6)


@pytest.mark.parametrize("id", ["a/b c?#100%ü", ".."])
async def test_commands_take_any_id(cli: Cli, id: str) -> None:
    due_at = "2094-05-06T07:08:09Z"
    create = ("create", "--id", id, "--url", "http://127.0.0.1:1/", "--at", due_at)
    created = await cli.data(*create, "--payload", "[1]", "--callback-timeout", "5s")
    assert (created["id"], created["callbackTimeout"]) == (id, "5s")
    again = await cli(*create, "--payload", "[1]", "--callback-timeout", "5s")
    assert again.output.startswith("Timer existed already.\n")
    refused = await cli(*create)
    problem = "a timer with this id exists and differs in --payload, --callback-timeout\n"
    assert refused == (1, "", problem)
    await cli.data("update", id, "--max-retries", "7", "--no-payload")
    shown = await cli.data("get", id)
    policy = shown["retryPolicy"]
    assert isinstance(policy, dict)
    assert (policy["maxRetries"], policy["initialInterval"]) == (7, "30s")
    assert (shown["payload"], shown["callbackTimeout"]) == (None, "5s")
    listed = await cli("list", "--namespace", "default", "--due-after", due_at)
    assert id in [line.split("\t")[0] for line in listed.output.splitlines()]
    for _ in range(2):
        canceled = await cli("cancel", id)
        assert canceled.status == 0, canceled.errors
        assert "status: canceled" in canceled.output.splitlines()


async def test_a_create_with_a_duration_may_be_repeated(cli: Cli) -> None:
    to_nowhere = ("--url", "http://127.0.0.1:1/", "--in", "100h")
    for name in (("--id", "repeated in 100 hours"), ("--idempotency-key", "repeated in 100 hours")):
        created = await cli.data("create", *name, *to_nowhere)
        again = await cli("create", *name, *to_nowhere)
        assert again.output.startswith("Timer existed already.\n"), again.errors
        assert await cli.data("create", *name, *to_nowhere) == created
        assert (await cli("create", *name, *to_nowhere[:3], "101h")).status == 1


async def test_a_cursor_continues_the_list_of_a_namespace(cli: Cli) -> None:
    lines = [
        json.dumps(
            {"id": f"t{n}", "executeAt": f"2090-01-0{n}T00:00:00Z", "callbackUrl": "http://a"}
        )
        for n in range(1, 6)
    ]
    assert (await cli("namespaces", "set", "paged")).status == 0
    await cli.data("import", "-", "--namespace", "paged", stdin="\n".join(lines))
    page = await cli.data("list", "--namespace", "paged", "--limit", "3")
    note = (await cli("list", "--namespace", "paged", "--limit", "3")).output.splitlines()[-1]
    assert note == f"3 timers of namespace 'paged'; more with --cursor {page['nextCursor']}"
    rest = await cli.data("list", "--namespace", "paged", "--cursor", str(page["nextCursor"]))
    timers = rest["timers"]
    assert isinstance(timers, list)
    assert [timer["id"] for timer in timers] == ["t4", "t5"]
    assert rest["nextCursor"] is None
    backwards = await cli(
        "list", "--namespace", "paged", "--cursor", str(page["nextCursor"]), "--order", "desc"
    )
    assert backwards.status == 1
    assert backwards.errors.startswith("--cursor is of another list: namespace, --status, ")
