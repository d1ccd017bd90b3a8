"""A blocking connection to PostgreSQL for the parent process."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self

import asyncpg

PATIENCE_SECONDS = 600.0
NO_SETTINGS: Mapping[str, str] = {}


class Queries:
    """Runs statements one after the other; the caller needs no event loop."""

    def __init__(self, url: str, settings: Mapping[str, str] = NO_SETTINGS) -> None:
        self._runner = asyncio.Runner()
        settings = {"application_name": "duetime-bench", **settings}
        self._connection = self._runner.run(
            asyncpg.connect(url, command_timeout=PATIENCE_SECONDS, server_settings=settings)
        )

    def execute(self, statement: str, *arguments: object) -> None:
        self._runner.run(self._connection.execute(statement, *arguments))

    def value(self, query: str, *arguments: object) -> Any:
        return self._runner.run(self._connection.fetchval(query, *arguments))

    def rows(self, query: str, *arguments: object) -> Sequence[Any]:
        rows: Sequence[Any] = self._runner.run(self._connection.fetch(query, *arguments))
        return rows

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
