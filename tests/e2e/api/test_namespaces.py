"""Namespaces on a real server, from the configuration and from the API."""

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from duetime.domain.instants import format_instant
from tests.polling import poll
from tests.real_server.callback_receiver import CallbackReceiver
from tests.real_server.command import run_command
from tests.real_server.databases import Database, on_every_database, on_postgresql
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import Json, in_ms, post_create

pytestmark = pytest.mark.e2e

PATH = "/api/v1/namespaces"
NO_TIMERS = {"pending": 0, "executing": 0, "completed": 0, "failed": 0, "canceled": 0}
DEFAULT_POLICY = {
    "maxRetries": 3,
    "maxAttempts": 4,
    "maxRetryAttemptsDuration": "24h",
    "maxAttemptsDuration": "24h",
    "initialInterval": "30s",
    "backoffMultiplier": 2.0,
    "maxInterval": "10m",
}
DEFAULT = {
    "name": "default",
    "numShards": 16,
    "retryPolicy": DEFAULT_POLICY,
    "retention": None,
    "concurrency": None,
    "maxPayloadBytes": None,
    "maxPending": None,
    "callbackNetworks": None,
    "slo": None,
    "sloStatus": None,
    "deleting": False,
}


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


async def create(api: httpx.AsyncClient, namespace: str, url: str, **members: object) -> None:
    body: Json = {"namespace": namespace, "id": "1", "executeAt": format_instant(in_ms(100))}
    body |= {"callbackUrl": url, **members}
    answer = await post_create(api, "/api/v1/timers", body, instant="executeAt")
    assert answer.status_code == 200, answer.text


async def put(api: httpx.AsyncClient, name: str, **members: object) -> dict[str, object]:
    answer = await api.put(f"{PATH}/{quote(name, safe='')}", json=members)
    assert answer.status_code == 200, answer.text
    namespace: dict[str, object] = answer.json()
    return namespace


@on_every_database
async def test_the_default_namespace_exists_from_the_start(
    tmp_path: Path, database: Database
) -> None:
    async with ServerProcess(tmp_path, **database.settings) as server, server.client() as api:
        assert (await api.get(PATH)).json() == {"namespaces": [DEFAULT]}
        assert (await api.get(f"{PATH}/default")).json() == {**DEFAULT, "counts": NO_TIMERS}


@on_every_database
async def test_a_new_namespace_takes_timers_at_once(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    """Also on shards that no namespace had before."""
    refused = await api.post(
        "/api/v1/timers",
        json={
            "namespace": "new",
            "id": "1",
            "executeAt": "2090-01-01T00:00:00Z",
            "callbackUrl": receiver.url,
        },
    )
    assert refused.json()["error"] == "NAMESPACE_NOT_FOUND"
    await put(api, "new", numShards=300)
    for number in range(50):
        await create(api, "new", receiver.url, id=str(number))
    await receiver.wait_for(50)


@on_every_database
async def test_put_changes_the_given_members_and_null_resets_them(api: httpx.AsyncClient) -> None:
    policy = {"maxRetries": 5, "initialInterval": "10s"}
    limits = {
        "concurrency": 2,
        "maxPayloadBytes": 9,
        "maxPending": 0,
        "callbackNetworks": "*.example.com:443",
        "slo": "95 % within 1s over 2h",
    }
    made = await put(api, "changed", numShards=4, retention="7d", retryPolicy=policy, **limits)
    status = {"attempts": 0, "late": 0, "errorBudgetLeft": 1.0}
    assert made.pop("sloStatus") in (None, status)
    assert made == {
        "name": "changed",
        "numShards": 4,
        "retryPolicy": {**DEFAULT_POLICY, **policy, "maxAttempts": 6},
        "retention": "7d",
        **limits,
        "deleting": False,
        "counts": NO_TIMERS,
    }
    # The budget is known as soon as it has been read from the store.
    again = await poll(lambda: put(api, "changed"), lambda each: each["sloStatus"] is not None)
    assert again == {**made, "sloStatus": status}
    changed = await put(api, "changed", retention="0s", retryPolicy={"maxAttempts": 2})
    assert changed["retention"] == "0s"
    assert changed["retryPolicy"] == {
        **DEFAULT_POLICY,
        **policy,
        "maxRetries": 1,
        "maxAttempts": 2,
    }
    nothing = dict.fromkeys(("retention", "retryPolicy", *limits))
    reset = await put(api, "changed", **nothing)
    assert reset == {**DEFAULT, "name": "changed", "numShards": 4, "counts": NO_TIMERS}
    assert (await api.get(f"{PATH}/changed")).json() == reset


@pytest.mark.parametrize("name", ["a/b", "..", ".", "größe☂", "a=b@c", "%2F", "x" * 255, ","])
async def test_a_name_may_have_any_characters_that_need_no_quotes(
    api: httpx.AsyncClient, name: str
) -> None:
    encoded = quote(name, safe="").replace(".", "%2E")
    answer = await api.put(f"{PATH}/{encoded}", json={})
    assert answer.json()["name"] == name
    assert (await api.get(f"{PATH}/{encoded}")).json()["name"] == name


@pytest.mark.parametrize("name", ["a b", "a?b", "$HOME", "it's", "-x", "tab\t", "a#b", "x\u200b"])
async def test_a_name_that_a_shell_would_read_differently_is_refused(
    api: httpx.AsyncClient, name: str
) -> None:
    path = f"{PATH}/{quote(name, safe='')}"
    answer = await api.put(path, json={})
    assert (answer.status_code, answer.json()["details"]) == (400, {"field": "namespace"})
    assert (await api.get(path)).json()["error"] == "NAMESPACE_NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"numShards": 0}, "numShards"),
        ({"numShards": 4097}, "numShards"),
        ({"numShards": "4"}, "numShards"),
        ({"retention": "1.5ms"}, "retention"),
        ({"retention": 7}, "retention"),
        ({"retention": "36501d"}, "retention"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"maxPayloadBytes": 0}, "maxPayloadBytes"),
        ({"callbackNetworks": ""}, "callbackNetworks"),
        ({"slo": "soon"}, "slo"),
        ({"slo": "99.9 % within 2h over 30d"}, "slo"),
        ({"slo": 99.9}, "slo"),
        ({"callbackNetworks": "public,10.0.0.1/8"}, "callbackNetworks"),
        ({"maxPayloadBytes": 2**70}, "maxPayloadBytes"),
        ({"retryPolicy": {"maxRetries": 101}}, "retryPolicy.maxRetries"),
        ({"retryPolicy": {"maxInterval": "soon"}}, "retryPolicy.maxInterval"),
        ({"retryPolicy": []}, "retryPolicy"),
        ({"shards": 4}, "shards"),
        ([], "body"),
    ],
)
async def test_a_refusal_names_the_field_and_creates_nothing(
    api: httpx.AsyncClient, body: object, field: str
) -> None:
    answer = await api.put(f"{PATH}/refused", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == "INVALID_INPUT"
    assert answer.json()["details"] == {"field": field}
    assert (await api.get(f"{PATH}/refused")).json()["error"] == "NAMESPACE_NOT_FOUND"


async def test_other_shards_unknown_names_and_wrong_keys_are_refused(
    api: httpx.AsyncClient,
) -> None:
    other = await api.put(f"{PATH}/default", json={"numShards": 17})
    assert (other.status_code, other.json()["details"]) == (400, {"field": "numShards"})
    absent = await api.get(f"{PATH}/absent")
    assert (absent.status_code, absent.json()["error"]) == (404, "NAMESPACE_NOT_FOUND")
    for name in ("x" * 256, "%00", "%FF"):
        bad = await api.put(f"{PATH}/{name}", json={})
        assert (bad.status_code, bad.json()["error"]) == (400, "INVALID_INPUT")
    removed = await api.delete(f"{PATH}/default")
    assert (removed.status_code, removed.json()["details"]) == (400, {"field": "namespace"})
    for request in (api.get(PATH), api.get(f"{PATH}/default"), api.put(f"{PATH}/b", content=b"")):
        api.headers["X-API-Key"] = "wrong"
        answer = await request
        assert (answer.status_code, answer.json()["error"]) == (401, "UNAUTHORIZED")


async def test_each_namespace_has_its_own_counts(
    api: httpx.AsyncClient, receiver: CallbackReceiver
) -> None:
    await put(api, "counted")
    await put(api, "empty")
    await create(api, "counted", receiver.url, executeAt="2090-01-01T00:00:00Z")
    assert (await api.get(f"{PATH}/counted")).json()["counts"] == NO_TIMERS | {"pending": 1}
    assert (await api.get(f"{PATH}/empty")).json()["counts"] == NO_TIMERS


async def test_timers_get_the_policy_and_the_limit_of_their_namespace(
    api: httpx.AsyncClient,
) -> None:
    await put(api, "limited", maxPayloadBytes=9, retryPolicy={"maxRetries": 7})
    body = {
        "namespace": "limited",
        "id": "1",
        "executeAt": "2090-01-01T00:00:00Z",
        "callbackUrl": "http://x.example",
    }
    timer = (await api.post("/api/v1/timers", json=body)).json()
    assert timer["retryPolicy"]["maxRetries"] == 7
    large = await api.post("/api/v1/timers", json={**body, "id": "2", "payload": "123456789"})
    assert (large.status_code, large.json()["error"]) == (413, "PAYLOAD_TOO_LARGE")


@on_every_database
async def test_creates_beyond_the_limit_are_refused_in_every_door(
    tmp_path: Path, database: Database
) -> None:
    config = tmp_path / "duetime.toml"
    config.write_text("[namespaces.default]\nmax_pending = 2\n")
    settings = {**database.settings, "DUETIME_CONFIG": str(config)}
    later = "2090-01-01T00:00:00Z"
    platform = {"execute_at": later, "callback": {"type": "http", "url": "http://x.example"}}
    v1 = {"id": "1", "executeAt": later, "callbackUrl": "http://x.example"}
    async with ServerProcess(tmp_path, **settings) as server, server.client() as api:
        answers = await asyncio.gather(*(api.post("/timers", json=platform) for _ in range(20)))
        assert sorted(each.status_code for each in answers) == [201] * 2 + [429] * 18
        refused = next(each for each in answers if each.status_code == 429)
        assert refused.headers["retry-after"]
        assert refused.json()["code"] == 2
        assert "'default' may have 2 timers" in refused.json()["message"]
        refused = await api.post("/api/v1/timers", json=v1)
        assert (refused.status_code, refused.json()["error"]) == (429, "TOO_MANY_TIMERS")
        assert refused.json()["details"] == {"field": "namespace", "maxPending": 2}
        assert "(maxPending)" in refused.json()["message"]
        assert refused.headers["retry-after"]
        await put(api, "default", maxPending=3)
        batch = {"timers": [v1, {**v1, "id": "2"}, v1]}
        entries = (await api.post("/api/v1/timers/batch", json=batch)).json()["results"]
        assert [each.get("error", {}).get("error") for each in entries] == [
            None,
            "TOO_MANY_TIMERS",
            None,
        ]
        lines = "\n".join(json.dumps({**v1, "id": id}) for id in "134")
        imported = (await api.post("/api/v1/timers/import", content=lines)).json()
        assert (imported["existing"], imported["invalid"]) == (1, 2)
        assert {each["error"] for each in imported["errors"]} == {"TOO_MANY_TIMERS"}
        assert (await api.get(f"{PATH}/default")).json()["counts"] == NO_TIMERS | {"pending": 3}


@on_every_database
async def test_configured_namespaces_exist_and_keep_their_shards(
    tmp_path: Path, database: Database
) -> None:
    config = tmp_path / "duetime.toml"
    config.write_text('[namespaces.b]\nretention = "7d"\n')
    settings = {**database.settings, "DUETIME_CONFIG": str(config)}
    async with (
        ServerProcess(tmp_path, NAMESPACES="a:4", **settings) as server,
        server.client() as api,
    ):
        listed = (await api.get(PATH)).json()["namespaces"]
    facts = [(each["name"], each["numShards"], each["retention"]) for each in listed]
    assert facts == [("a", 4, None), ("b", 16, "7d"), ("default", 16, None)]
    settings |= {"API_KEY": API_KEY, "HOST": "127.0.0.1", "PORT": "0", "NAMESPACES": "a:5"}
    refused = await run_command("serve", directory=tmp_path, **settings)
    assert (refused.status, refused.errors.splitlines()[-1]) == (
        2,
        "namespace 'a': num_shards was fixed at 4 when the namespace was created and "
        "cannot be changed",
    )


@on_postgresql
async def test_nodes_learn_of_each_others_namespaces(
    tmp_path: Path, database: Database, receiver: CallbackReceiver
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    async with (
        ServerProcess(tmp_path / "one", **database.settings) as one,
        ServerProcess(tmp_path / "two", **database.settings) as two,
        one.client() as here,
        two.client() as there,
    ):
        await put(here, "new", numShards=64, retryPolicy={"maxRetries": 7})
        for number in range(50):
            await create(there, "new", receiver.url, id=str(number))
        await receiver.wait_for(50)
        shown = (await there.get(f"{PATH}/new")).json()
        assert shown["retryPolicy"]["maxRetries"] == 7


async def test_the_command_line_sets_and_shows_namespaces(
    server: ServerProcess, tmp_path: Path
) -> None:
    environ = {"DUETIME_URL": server.url, "DUETIME_API_KEY": API_KEY}

    async def namespaces(*arguments: str) -> list[str]:
        finished = await run_command("namespaces", *arguments, directory=tmp_path, **environ)
        assert finished.status == 0, finished.errors
        return finished.output.splitlines()

    await namespaces("set", "cli/b", "--shards", "4", "--retention", "7d", "--max-retries", "5")
    await namespaces("set", "cli/b", "--concurrency", "9", "--max-pending", "1000")
    shown = await namespaces("show", "cli/b")
    assert shown[:4] == ["name: cli/b", "shards: 4", "retention: 7d", "concurrency: 9"]
    assert shown[5:7] == ["pending limit: 1,000", "slo: none"]
    assert shown[8] == "callback networks: as the service"
    assert shown[9].startswith("retries: 5 within 24h")
    await namespaces("set", "cli/b", "--callback-networks", "10.0.0.0/8:443")
    assert "callback networks: 10.0.0.0/8:443" in await namespaces("show", "cli/b")
    await namespaces("set", "cli/b", "--callback-networks", "default")
    assert "callback networks: as the service" in await namespaces("show", "cli/b")
    listed = [line.split("\t")[0] for line in await namespaces()]
    assert listed[0] == "name"
    assert {"cli/b", "default"} < set(listed)
    finished = await run_command(
        "namespaces", "set", "cli/b", "--shards", "5", directory=tmp_path, **environ
    )
    assert (finished.status, finished.errors.count("\n")) == (1, 1)
    assert "was fixed at 4 when the namespace was created" in finished.errors
