"""A scrape of a real server, on the API's port or on one of its own."""

import asyncio
from pathlib import Path

import httpx
import pytest

from duetime.telemetry.metrics.catalogue.all_metrics import ALL_METRICS
from tests.e2e.metrics.scraping import ACCEPT, label_values, scrape, value
from tests.real_server.api_connection import ApiConnection
from tests.real_server.command import run_command
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.real_server.timer_requests import create_timer, in_ms

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("form", ACCEPT)
async def test_the_families_are_those_of_the_catalogue(
    shared_server: ServerProcess, form: str
) -> None:
    families = await scrape(shared_server.url, form)
    assert list(families) == [metric.family for metric in ALL_METRICS]
    for metric in ALL_METRICS:
        assert families[metric.family].type == metric.kind
        assert families[metric.family].documentation == metric.help
    assert label_values(families, "worker") == {""}


async def test_requests_connections_and_the_process_are_counted(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        async with server.client() as api:
            for _ in range(3):
                await create_timer(api, "http://127.0.0.1:9/", in_ms(3_600_000))
            await api.get("/unknown")
            async with ApiConnection(server.url) as connection:
                await connection.send(b"GET /%b HTTP/1.1\r\n\r\n" % (b"x" * 70_000))
                await connection.read_to_end()
            families = await scrape(server.url)
        requests = "duetime_http_requests_total"
        assert value(families, requests, operation="createTimer", status="201") == 3
        assert value(families, requests, operation="none", status="404") == 1
        assert value(families, requests, operation="none", status="431") == 1
        durations = "duetime_http_request_duration_seconds"
        assert value(families, f"{durations}_count", operation="createTimer") == 3
        assert 0 < value(families, f"{durations}_sum", operation="createTimer") < 60
        assert value(families, "duetime_http_connections") >= 2
        assert value(families, "process_open_fds") >= 3
        assert 10**7 < value(families, "process_resident_memory_bytes") < 10**9
        assert 0 < value(families, "process_cpu_seconds_total") < 60
        assert value(families, "duetime_build_info", store="sqlite") == 1
        assert value(families, "duetime_workers") == 1
        assert value(families, "duetime_workers_answering") == 1


async def test_the_metrics_have_a_port_of_their_own(tmp_path: Path, free_port: int) -> None:
    async with ServerProcess(tmp_path, METRICS_PORT=str(free_port)) as server:
        own_url = f"http://127.0.0.1:{free_port}"
        (served,) = [entry for entry in server.logs if entry["event"] == "metrics.served"]
        assert served["url"] == f"{own_url}/metrics"
        families = await scrape(own_url)
        assert value(families, "duetime_build_info") == 1
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{own_url}/metrics")).status_code == 401
            assert (await client.get(f"{own_url}/timers")).status_code == 404
            elsewhere = await client.get(f"{server.url}/metrics")
            assert elsewhere.status_code == 404
            assert "METRICS_PORT" in elsewhere.json()["message"]


async def test_public_metrics_need_no_key(tmp_path: Path, free_port: int) -> None:
    settings = {"METRICS_PORT": str(free_port), "METRICS_PUBLIC": "true"}
    async with ServerProcess(tmp_path, **settings), httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"http://127.0.0.1:{free_port}/metrics")
        assert answer.status_code == 200


async def test_silent_connections_to_the_own_port_hold_up_neither_scrapes_nor_the_api(
    tmp_path: Path, free_port: int
) -> None:
    async with ServerProcess(tmp_path, METRICS_PORT=str(free_port)) as server:
        silent = [await asyncio.open_connection("127.0.0.1", free_port) for _ in range(40)]
        try:
            async with server.client() as api:
                await create_timer(api, "http://127.0.0.1:9/", in_ms(3_600_000))
            assert await scrape(f"http://127.0.0.1:{free_port}")
        finally:
            for _, writer in silent:
                writer.close()


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_port_in_use_is_named_with_its_setting(
    shared_server: ServerProcess, tmp_path: Path, workers: str
) -> None:
    taken = httpx.URL(shared_server.url).port
    finished = await run_command(
        *("serve", "--host", "127.0.0.1", "--port", "0", "--workers", workers),
        directory=tmp_path,
        API_KEY=API_KEY,
        METRICS_PORT=str(taken),
        # It is not asked for before the port is known to be free.
        DATABASE_URL="postgresql://127.0.0.1:9/none" if workers == "2" else "memory:",
    )
    assert finished.status == 1
    expected = f"METRICS_PORT: cannot listen on 127.0.0.1:{taken}: port {taken} is already in use"
    assert finished.errors.splitlines()[-1].endswith(expected)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"METRICS_PORT": "8080", "PORT": "8080"}, "METRICS_PORT='8080': must differ from PORT"),
        ({"METRICS_PORT": "0"}, "METRICS_PORT='0': must be a whole number from 1 to 65535"),
        ({"METRICS_HOST": "127.0.0.1"}, "METRICS_HOST='127.0.0.1': is the address of METRICS_PORT"),
        ({"METRICS_PUBLIC": "maybe"}, "METRICS_PUBLIC='maybe': must be true or false"),
        (
            {"AUTH": "none", "METRICS_PORT": "9464", "METRICS_HOST": "0.0.0.0"},
            "AUTH=none lets everyone read the metrics who can reach METRICS_HOST=0.0.0.0",
        ),
    ],
)
async def test_wrong_settings_are_explained(
    tmp_path: Path, settings: dict[str, str], expected: str
) -> None:
    given = {"API_KEY": API_KEY, "HOST": "127.0.0.1", **settings}
    finished = await run_command("serve", directory=tmp_path, **given)
    assert finished.status == 2
    assert expected in finished.errors
