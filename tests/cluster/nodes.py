"""Several real server processes on one PostgreSQL schema."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx

from tests.polling import poll
from tests.real_server.server_process import DUETIME, ServerProcess

SHARDS = 16


class Nodes:
    """Nodes by number. Each keeps its port when it is restarted."""

    def __init__(self, directory: Path, url: str, schema: str, settings: dict[str, str]) -> None:
        self._directory = directory
        self._environment = {
            "DATABASE_URL": url,
            "PG_SCHEMA": schema,
            "TIMER_DB_PATH": "",
            **settings,
        }
        self.all: list[ServerProcess] = []

    def __getitem__(self, number: int) -> ServerProcess:
        return self.all[number]

    async def add(self, **settings: str) -> ServerProcess:
        """Start another node, with settings of its own beside those of all."""
        directory = self._directory / f"node-{len(self.all)}"
        directory.mkdir()
        node = ServerProcess(directory, **self._environment, **settings)
        self.all.append(node)
        await node.start()
        return node

    async def wait_until_spread(self, nodes: Sequence[ServerProcess] | None = None) -> None:
        """Wait until these nodes, or all, own all shards in even shares."""
        nodes = self.all if nodes is None else nodes
        smallest, largest = SHARDS // len(nodes), -(-SHARDS // len(nodes))
        async with AsyncExitStack() as stack:
            apis = [await stack.enter_async_context(node.client()) for node in nodes]

            async def owned() -> list[int]:
                return [await shards_owned(api) for api in apis]

            await poll(
                owned,
                lambda owned: (
                    sum(owned) == SHARDS and all(smallest <= count <= largest for count in owned)
                ),
            )

    async def audit(self) -> str:
        """The output of `duetime audit`, which must find nothing."""
        process = await asyncio.create_subprocess_exec(
            DUETIME,
            "audit",
            cwd=self._directory,
            env={"PATH": os.environ["PATH"], **self._environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()
        return output.decode()

    def events(self, name: str) -> Counter[int]:
        """How often each node has logged the event."""
        return Counter(
            {
                number: sum(entry["event"] == name for entry in node.logs)
                for number, node in enumerate(self.all)
            }
        )


async def shards_owned(api: httpx.AsyncClient) -> int:
    answer = await api.get("/healthz")
    return int(answer.json()["data"]["engine"]["shards_owned"])


@asynccontextmanager
async def running_nodes(
    count: int, directory: Path, url: str, schema: str, **settings: str
) -> AsyncIterator[Nodes]:
    """Nodes that share the schema and its shards. All are killed at the end."""
    nodes = Nodes(directory, url, schema, settings)
    try:
        for _ in range(count):
            await nodes.add()
        if count:
            await nodes.wait_until_spread()
        yield nodes
    except BaseException:
        for node in nodes.all:
            sys.stdout.write("\n".join([str(node.directory), *node.output[-40:], ""]))
        raise
    finally:
        for node in nodes.all:
            await node.__aexit__(None, None, None)
