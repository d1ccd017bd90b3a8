"""The environment and the probes of the chart's pod, on a real server."""

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.brokers.broker_process import free_port
from tests.deploy.chart import plain_environment, pods, template
from tests.polling import poll
from tests.real_server.command import run_command
from tests.real_server.databases import Database, on_postgresql
from tests.real_server.server_process import API_KEY, ServerProcess


def containers(*values: str) -> list[dict[str, Any]]:
    """The container of the server and, on PostgreSQL, that of the migration."""
    given = [argument for each in values for argument in ("--set", each)]
    answer = template(
        "--set", "existingSecret=duetime", "--set", "image.repository=duetime", *given
    )
    assert answer.returncode == 0, answer.stderr
    rendered = [each for each in yaml.safe_load_all(answer.stdout) if each]
    return [pod["containers"][0] for pod in pods(rendered)]


def pod(container: dict[str, Any], directory: Path) -> ServerProcess:
    """A server with the settings of the container, but for what is particular to this machine."""
    own = {"HOST": "127.0.0.1", "PORT": "0", "TIMER_DB_PATH": str(directory / "timers.db")}
    return ServerProcess(directory, **plain_environment(container) | own)


async def test_a_draining_pod_is_not_ready_but_alive(tmp_path: Path) -> None:
    # Long enough for any machine; the server is killed before.
    (container,) = containers("drainSeconds=300", f"metrics.port={free_port()}")
    async with pod(container, tmp_path) as process:

        async def status(probe: str) -> int:
            return (await api.get(container[probe]["httpGet"]["path"])).status_code

        async with httpx.AsyncClient(base_url=process.url, trust_env=False) as api:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert await status(probe) == 200
            os.kill(process.pid, signal.SIGTERM)
            await poll(lambda: status("readinessProbe"), lambda answer: answer == 503)
            assert await status("livenessProbe") == 200
        await process.kill()


@pytest.mark.parametrize("public", ["true", "false"])
async def test_metrics_are_on_their_own_port_behind_a_key(public: str, tmp_path: Path) -> None:
    port = free_port()
    (container,) = containers(f"metrics.port={port}", f"metrics.public={public}")
    async with pod(container, tmp_path) as process, httpx.AsyncClient(trust_env=False) as client:
        url = f"http://127.0.0.1:{port}/metrics"
        bearer = {"Authorization": f"Bearer {API_KEY}"}
        assert "duetime_" in (await client.get(url, headers=bearer)).text
        assert (await client.get(url)).status_code == (200 if public == "true" else 401)
        assert (await client.get(f"{process.url}/metrics", headers=bearer)).status_code == 404


@on_postgresql
async def test_the_migration_prepares_the_database(database: Database, tmp_path: Path) -> None:
    _, container = containers("store.kind=postgresql", "secretSettings.DATABASE_URL.key=url")
    environ = {**plain_environment(container), **database.settings, "API_KEY": API_KEY}
    before = await run_command("migrate", "--check", directory=tmp_path, **environ)
    assert before.status == 1
    for _ in range(2):
        migrated = await run_command(*container["args"], directory=tmp_path, **environ)
        assert migrated.status == 0, migrated.errors
    after = await run_command("migrate", "--check", directory=tmp_path, **environ)
    assert after.status == 0, after.errors
