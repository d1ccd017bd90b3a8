"""A real `duetime serve` process, to be stopped, killed and restarted."""

import asyncio
import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Self

import httpx

from tests.polling import PATIENCE_SECONDS

DUETIME = str(Path(sys.executable).with_name("duetime"))
API_KEY = "an-api-key-for-tests-of-32-characters-or-more"

# Servers under test speak plain HTTP; loading the system's authorities takes 20 ms per client.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

LogEntry = dict[str, object]


class ServerDied(Exception):
    """The process ended unexpectedly; the message is its output."""


class ServerProcess:
    """A restarted server keeps its database and port. Any event loop can use a running server.

    `settings` are environment variables; only PATH is added. By default the server keeps timers in
    an SQLite file in the directory, allows any future instant, calls receivers on this machine, and
    chooses a free port.
    `open_files` limits the descriptors of the next start, as `ulimit -n` does. `launcher` is a
    command that starts the server in its place.
    """

    open_files: int | None = None

    def __init__(self, directory: Path, *, launcher: Sequence[str] = (), **settings: str) -> None:
        self.directory = directory
        self._launcher = launcher
        self.logs: list[LogEntry] = []
        self.output: list[str] = []
        self.url = ""
        self._settings = {
            "API_KEY": API_KEY,
            "HOST": "127.0.0.1",
            "PORT": "0",
            "CALLBACK_NETWORKS": "public,private,loopback",
            "MIN_DELAY_SECONDS": "0",
            "LOG_FORMAT": "json",
            **settings,
        }
        if "DATABASE_URL" not in settings:
            self._settings.setdefault("TIMER_DB_PATH", str(directory / "timers.db"))
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: Thread
        self._lock = Lock()
        self._on_output: list[Callable[[], object]] = []
        self._silent = True

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Return once the server answers. Raises `ServerDied` if it ends instead."""
        assert self._process is None, "the server is running already"
        seen = len(self.logs)
        command = [*self._launcher, DUETIME, "serve"]
        if self.open_files is not None:
            command = ["sh", "-c", f'ulimit -n {self.open_files} && exec "$@"', "sh", *command]
        self._process = subprocess.Popen(
            command,
            cwd=self.directory,
            env={"PATH": "/usr/bin:/bin", **self._settings},
            stderr=subprocess.PIPE,
        )
        self._silent = False
        self._reader = Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        try:
            started = await self.wait_for_log("service.started", after=seen)
        except ServerDied:
            await self._wait()
            raise
        self.url = str(started["url"])
        self._settings["PORT"] = str(httpx.URL(self.url).port)

    async def stop(self) -> int:
        """Stop the server with SIGTERM, as an operator would; returns its exit status."""
        self._running().terminate()
        return await self._wait()

    async def kill(self) -> None:
        """End the process at once, as a power failure would."""
        self._running().kill()
        await self._wait()

    async def ended(self) -> int:
        """The exit status of a server that ends by itself."""
        return await self._wait()

    def pause(self) -> None:
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    async def wait_for_log(
        self,
        event: str,
        *,
        after: int = 0,
        matches: Callable[[LogEntry], bool] = lambda entry: True,
    ) -> LogEntry:
        """The first log entry of that event, from index `after` of `logs` on."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            loop.call_soon_threadsafe(news.set)

        with self._lock:
            self._on_output.append(notify)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    news.clear()
                    silent = self._silent
                    for entry in self.logs[after:]:
                        if entry.get("event") == event and matches(entry):
                            return entry
                    if silent:
                        raise ServerDied("\n".join(self.output))
                    await news.wait()
        finally:
            with self._lock:
                self._on_output.remove(notify)

    def client(self) -> httpx.AsyncClient:
        """A client of the API with the right key."""
        return httpx.AsyncClient(
            base_url=self.url,
            headers={"X-API-Key": self._settings["API_KEY"]},
            timeout=PATIENCE_SECONDS,
            trust_env=False,
            verify=_NO_TLS,
        )

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server is not running"
        return self._process

    async def _wait(self) -> int:
        process, self._process = self._running(), None
        status = await asyncio.to_thread(process.wait, PATIENCE_SECONDS)
        # Workers inherit standard error, so the reader ends with the last of them.
        await asyncio.to_thread(self._reader.join, PATIENCE_SECONDS)
        assert not self._reader.is_alive(), "another process still holds standard error"
        return status

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                text = line.decode().rstrip("\n")
                if text.startswith("{"):
                    self.logs.append(json.loads(text))
                self.output.append(text)
                self._announce()
        self._silent = True
        self._announce()

    def _announce(self) -> None:
        with self._lock:
            for notify in self._on_output:
                notify()

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
