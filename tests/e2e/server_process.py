"""A real `duetime serve` process, to be stopped, killed and restarted."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

DUETIME = str(Path(sys.executable).with_name("duetime"))
API_KEY = "an-api-key-for-tests-of-32-characters-or-more"
PATIENCE_SECONDS = 30.0

LogEntry = dict[str, object]


class ServerDied(Exception):
    """The process ended although it should not have; the message is what it said."""


class ServerProcess:
    """Started anew it keeps the database and the port of its first start.

    `settings` are environment variables; no others but PATH are passed on. By default timers are
    kept in an SQLite file in the directory, any future instant is allowed, and a free port is
    chosen.
    """

    def __init__(self, directory: Path, **settings: str) -> None:
        self.directory = directory
        self.logs: list[LogEntry] = []
        self.output: list[str] = []
        self.url = ""
        self._settings = {
            "API_KEY": API_KEY,
            "HOST": "127.0.0.1",
            "PORT": "0",
            "MIN_DELAY_SECONDS": "0",
            "LOG_FORMAT": "json",
            **settings,
        }
        if "DATABASE_URL" not in settings:
            self._settings.setdefault("TIMER_DB_PATH", str(directory / "timers.db"))
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        self._silent = True

    @property
    def pid(self) -> int:
        return self._running().pid

    async def start(self) -> None:
        """Return once the server answers. Raises `ServerDied` if it ends instead."""
        assert self._process is None, "the server is running already"
        seen = len(self.logs)
        self._process = await asyncio.create_subprocess_exec(
            DUETIME,
            "serve",
            cwd=self.directory,
            env={"PATH": "/usr/bin:/bin", **self._settings},
            stderr=asyncio.subprocess.PIPE,
            limit=2**20,
        )
        self._silent = False
        self._reading = asyncio.create_task(self._read(self._process))
        try:
            started = await self.wait_for_log("service.started", after=seen)
        except ServerDied:
            await self._wait()
            raise
        self.url = str(started["url"])
        self._settings["PORT"] = str(httpx.URL(self.url).port)

    async def stop(self) -> int:
        """Ask the server to stop, as an operator would; answers its exit status."""
        self._running().send_signal(signal.SIGTERM)
        return await self._wait()

    async def kill(self) -> None:
        """End the process at once, as a power failure would."""
        self._running().kill()
        await self._wait()

    async def pause(self) -> None:
        self._running().send_signal(signal.SIGSTOP)

    async def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    async def wait_for_log(
        self,
        event: str,
        *,
        after: int = 0,
        matches: Callable[[LogEntry], bool] = lambda entry: True,
    ) -> LogEntry:
        """The first log entry of that event, from index `after` of `logs` on."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._news:
            while True:
                for entry in self.logs[after:]:
                    if entry.get("event") == event and matches(entry):
                        return entry
                if self._silent:
                    raise ServerDied("\n".join(self.output))
                await self._news.wait()

    def client(self) -> httpx.AsyncClient:
        """A client of the API with the right key."""
        return httpx.AsyncClient(
            base_url=self.url,
            headers={"X-API-Key": self._settings["API_KEY"]},
            timeout=PATIENCE_SECONDS,
            trust_env=False,
        )

    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "the server is not running"
        return self._process

    async def _wait(self) -> int:
        process, self._process = self._running(), None
        async with asyncio.timeout(PATIENCE_SECONDS):
            status = await process.wait()
            assert self._reading is not None
            await self._reading
        return status

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            text = line.decode().rstrip("\n")
            async with self._news:
                self.output.append(text)
                if text.startswith("{"):
                    self.logs.append(json.loads(text))
                self._news.notify_all()
        async with self._news:
            self._silent = True
            self._news.notify_all()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None:
            await self.kill()
