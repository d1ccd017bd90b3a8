"""The process of `killed_command`, as tests use it."""

import asyncio
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.polling import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[3]


class KilledCommands:
    """Commands of a user, each killed at a chosen point."""

    def __init__(self, **environ: str) -> None:
        self._environ = environ
        self._process: asyncio.subprocess.Process

    async def __call__(self, point: int, *arguments: str) -> tuple[int, int]:
        """The exit status, and the number of points if the command was not killed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(("\t".join([str(point), *arguments]) + "\n").encode())
        async with asyncio.timeout(PATIENCE_SECONDS):
            status, points = (await self._process.stdout.readline()).split()
        return int(status), int(points)

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.crash.copies.killed_command"),
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", **self._environ},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
