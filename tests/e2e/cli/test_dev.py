"""`duetime dev`, and the commands and examples that are run beside it in its directory."""

import signal
from pathlib import Path

import httpx
import pytest

from duetime.listener import bind_next_free
from tests.brokers.running_broker import RunningBroker
from tests.e2e.test_examples import run_example
from tests.real_server.command import Command, run_command
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = pytest.mark.e2e


async def url_of(dev: Command) -> str:
    return (await dev.line(containing="API:")).split()[-1]


def free_port(first: int) -> int:
    with bind_next_free("127.0.0.1", first) as listener:
        port: int = listener.getsockname()[1]
        return port


# Tests beside this one may look for a free port at the same time, so each begins elsewhere.
@pytest.mark.parametrize(("place", "first"), [("environment", 18_300), ("dotenv", 18_340)])
async def test_dev_and_the_commands_agree_on_the_port(
    place: str, first: int, tmp_path: Path
) -> None:
    port = str(free_port(first))
    environ = {"PORT": port} if place == "environment" else {}
    if place == "dotenv":
        (tmp_path / ".env").write_text(f"PORT={port}\n")
    async with Command("dev", directory=tmp_path, **environ) as dev:
        assert await url_of(dev) == f"http://127.0.0.1:{port}"
        await dev.line(containing="demo timer is due")
        listed = await run_command("list", directory=tmp_path, **environ)
        assert listed.status == 0, listed.errors
        assert await dev.end(signal.SIGINT) == 0


async def test_the_key_of_serve_is_neither_used_nor_shown_by_dev(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"API_KEY={API_KEY}\n")
    async with ServerProcess(tmp_path) as server, Command("dev", directory=tmp_path) as dev:
        dev_url = await url_of(dev)
        await dev.line(containing="demo timer is due")
        # Without an address the commands talk to dev, even if it had to take another port.
        listed = await run_command("health", "--json", directory=tmp_path)
        assert listed.status == 0, listed.errors
        for url in (dev_url, server.url):
            listed = await run_command("list", "--server", url, directory=tmp_path)
            assert listed.status == 0, listed.errors
        assert await dev.end(signal.SIGINT) == 0
        assert API_KEY not in "\n".join(dev.lines)


async def test_commands_follow_dev_to_another_port(tmp_path: Path) -> None:
    with bind_next_free("127.0.0.1", 18_320) as taken:
        port = str(taken.getsockname()[1])
        async with Command("dev", "--port", port, directory=tmp_path) as dev:
            url = await url_of(dev)
            assert not url.endswith(f":{port}")
            assert "--server" not in await dev.line(containing=" create --id ")
            await dev.line(containing="demo timer is due")
            health = await run_command("health", directory=tmp_path, PORT=port)
            assert f"server: {url}\n" in health.output
            assert await dev.end(signal.SIGINT) == 0


async def test_the_link_of_dev_signs_in_as_often_as_it_is_clicked(tmp_path: Path) -> None:
    async with Command("dev", "--port", "0", directory=tmp_path) as dev:
        link = (await dev.line(containing="Web UI:")).split()[-1]
        await dev.line(containing="demo timer is due")
        for _ in range(2):
            async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
                page = await browser.get(link)
            assert (page.status_code, page.url.path) == (200, "/ui")
            assert "Overview" in page.text
        opened = await run_command("open", "--print", directory=tmp_path)
        assert opened.status == 0, opened.errors
        assert opened.output.startswith(link.partition("=")[0])
        assert await dev.end(signal.SIGINT) == 0


async def test_examples_find_dev_and_serve(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        port = server.url.rpartition(":")[2]
        (tmp_path / ".env").write_text(f"API_KEY={API_KEY}\nPORT={port}\n")
        async with Command("dev", directory=tmp_path) as dev:
            await dev.line(containing="demo timer is due")
            finished = await run_example("remind_me.py", "--seconds=0.1", directory=tmp_path)
            assert finished.status == 0, finished.errors
            listed = await run_command("list", directory=tmp_path)
            assert "reminder-" in listed.output
            assert await dev.end(signal.SIGINT) == 0
        finished = await run_example("remind_me.py", "--seconds=0.1", directory=tmp_path)
        assert finished.status == 0, finished.errors
        listed = await run_command("list", directory=tmp_path)
        assert "reminder-" in listed.output


async def test_dev_uses_the_broker_of_dotenv(broker: RunningBroker, tmp_path: Path) -> None:
    port = free_port(18_360)
    lines = [f"{name}={text}" for name, text in broker.settings.items()]
    (tmp_path / ".env").write_text("\n".join([*lines, f"PORT={port}"]))
    async with Command("dev", directory=tmp_path) as dev:
        shown = await dev.line(containing="Broker:")
        assert broker.settings["TIMER_BROKER_URL"].rpartition(":")[2] in shown
        await dev.line(containing="demo timer is due")
        tail = Command("bus", "tail", "--count", "1", directory=tmp_path)
        async with tail:
            await tail.line(containing="Watching")
            sent = await run_command(
                "bus", "schedule", "call-1", "--tenant", "acme", "--in", "10ms", directory=tmp_path
            )
            assert sent.status == 0, sent.errors
            assert await tail.ended() == 0
            assert "acme/call-1" in tail.lines[-1]
        assert await dev.end(signal.SIGINT) == 0


async def test_a_second_dev_in_a_directory_is_told_how_to_run(tmp_path: Path) -> None:
    async with Command("dev", "--port", "0", directory=tmp_path) as dev:
        await dev.line(containing="demo timer is due")
        second = await run_command("dev", "--port", "0", directory=tmp_path)
        assert second.status == 1
        assert "duetime-dev.db is in use by another duetime process" in second.errors
        assert second.errors.endswith(
            '; to run both: duetime dev --db other.db, or make run ARGS="--db other.db"\n'
        )
        assert await dev.end(signal.SIGINT) == 0
