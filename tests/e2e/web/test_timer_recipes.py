"""The commands on the page of a timer, run as they are printed."""

import asyncio
import os
import re
import sys
from html import unescape
from pathlib import Path

import httpx
import pytest

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.v1_requests import TIMERS, v1_path

RECIPE = re.compile(r"<summary>([^<]+)</summary>\s*<div[^>]*><pre[^>]*><code>([^<]+)")
PAYLOAD = (
    '{"n":12345678901234567890.12345678901234567890,"t":"it\'s $HOME `date` --in \\\\ \'\'\' é",'
    '"n":[1E+5]}'
)
VOLATILE = ("createdAt", "updatedAt", "deliveryId")
BIN = Path(sys.executable).parent


async def run(server: ServerProcess, recipe: str, text: str) -> None:
    """Run the text as a person who pastes it would."""
    program = [sys.executable, "-c", text] if recipe == "Python" else ["bash", "-c", text]
    process = await asyncio.create_subprocess_exec(
        *program,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=server.directory,
        env={
            "PATH": f"{BIN}{os.pathsep}/usr/bin:/bin",
            "DUETIME_API_KEY": API_KEY,
            "LC_ALL": "C.UTF-8",
        },
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


async def recipes_of(api: httpx.AsyncClient, id: str) -> dict[str, str]:
    page = await api.get(f"/ui/timers/default/{id}")
    assert page.status_code == 200, page.text
    assert API_KEY not in page.text
    return {name: unescape(text) for name, text in RECIPE.findall(page.text)}


async def stored(api: httpx.AsyncClient, id: str) -> tuple[dict[str, object], str]:
    """The timer without what differs each time, and its payload as it is written."""
    answer = await api.get(v1_path(id))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    payload = answer.text.partition('"payload":')[2].partition(',"retryPolicy"')[0]
    return {name: value for name, value in found.items() if name not in VOLATILE}, payload


@pytest.mark.parametrize("recipe", ["curl", "Command line", "Python"])
async def test_a_pending_timer_is_created_once_more(tmp_path: Path, recipe: str) -> None:
    body = (
        '{"id":"it\'s one","executeAt":"2040-01-01T00:00:00.123456Z","callbackTimeout":"7s",'
        '"callbackUrl":"https://example.com/a?b=\'c\'","callbackHeaders":{"X-Tag":"a b"},'
        f'"retryPolicy":{{"maxRetries":2,"initialInterval":"5s"}},"metadata":{{"a":1}},'
        f'"payload":{PAYLOAD}}}'
    )
    async with ServerProcess(tmp_path) as server, server.client() as api:
        assert (await api.post(TIMERS, content=body)).status_code == 200
        before = await stored(api, "it's one")
        recipes = await recipes_of(api, "it's one")
        await run(server, recipe, recipes[recipe])
        copy, payload = await stored(api, "it's one-again")
        assert (copy | {"id": "it's one"}, payload) == before
        assert before[1] == PAYLOAD


@pytest.mark.parametrize("recipe", ["curl", "Python"])
async def test_a_finished_timer_is_created_under_another_id(tmp_path: Path, recipe: str) -> None:
    body = {
        "id": "done",
        "executeAt": "2040-01-01T00:00:00Z",
        "callbackUrl": "https://example.com/a",
        "callbackProtocol": "status",
    }
    async with ServerProcess(tmp_path) as server, server.client() as api:
        assert (await api.post(TIMERS, json=body)).status_code == 200
        assert (await api.post(f"{v1_path('done')}/cancel")).status_code == 200
        recipes = await recipes_of(api, "done")
        await run(server, recipe, recipes[recipe])
        again, _ = await stored(api, "done-again")
        assert (again["status"], again["callbackProtocol"]) == ("pending", "status")
