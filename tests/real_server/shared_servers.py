"""Servers that outlive a test: starting one takes longer than most tests do."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

from tests.postgres.fixtures import dropped_schema
from tests.real_server.databases import Database, PostgresDatabase
from tests.real_server.server_process import ServerProcess


class SharedServers:
    """One server per kind of database, started when a test first needs it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._servers: dict[str, ServerProcess] = {}
        self._schemas = ExitStack()

    async def server(self, database: Database) -> ServerProcess:
        """The server on a database of the same kind as this one."""
        kind = type(database).__name__
        if kind not in self._servers or not self._servers[kind].is_running:
            directory = self._directory / kind
            directory.mkdir(exist_ok=True)
            settings = {}
            if isinstance(database, PostgresDatabase):
                schema = self._schemas.enter_context(dropped_schema(database.url))
                settings = PostgresDatabase(database.url, schema).settings
            server = ServerProcess(directory, **settings)
            await server.start()
            self._servers[kind] = server
        return self._servers[kind]

    def close(self) -> None:
        for server in self._servers.values():
            if server.is_running:
                asyncio.run(server.kill())
        self._schemas.close()
