"""The server under test: a real process, spoken to only over its public face."""

import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import msgspec
import psutil

START_SECONDS = 60.0
STOP_SECONDS = 20.0
LOG_NAME = "server.log"
COMMAND = Path(sys.executable).with_name("duetime")


class ServerFailed(Exception):
    """The server did not start or did not answer; the message quotes the end of its log."""


class PageData(msgspec.Struct, frozen=True):
    total: int


class PageAnswer(msgspec.Struct, frozen=True):
    data: PageData


class Server:
    """`duetime serve` on a free port of the loopback, with its SQLite file in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.api_key = secrets.token_urlsafe(32)
        self.port = free_port()
        self.database = directory / "bench.db"
        self._log_path = directory / LOG_NAME
        environment = {
            name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ
        }
        environment |= {
            "API_KEY": self.api_key,
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "DATABASE_URL": f"sqlite:///{self.database}",
            "MIN_DELAY_SECONDS": "0",
            "LOG_LEVEL": "warning",
        }
        started = time.perf_counter()
        with self._log_path.open("ab") as log:
            # Started in its own directory, where no .env file of ours can change its settings.
            self._process = subprocess.Popen(
                [COMMAND, "serve"],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.perf_counter() - started
        self._watched = psutil.Process(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def total(self, status: str) -> int:
        """How many timers have the status, as the list endpoint tells it."""
        try:
            code, body = self._get(f"/timers?status={status}&limit=1")
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailed(f"GET /timers: {error!r}\n{self._log_end()}") from error
        if code != 200:
            raise ServerFailed(f"GET /timers answered {code}: {body[:300]!r}")
        return msgspec.json.decode(body, type=PageAnswer).data.total

    def memory_mb(self) -> float:
        """Resident memory of the process and its children, in megabytes (10^6 bytes)."""
        return sum(float(each.memory_info().rss) for each in self._family()) / 1e6

    def cpu_seconds(self) -> float:
        times = [each.cpu_times() for each in self._family()]
        return sum(float(each.user + each.system) for each in times)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL to what does not end in time."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _family(self) -> list[psutil.Process]:
        return [self._watched, *self._watched.children(recursive=True)]

    def _get(self, path: str, timeout_seconds: float = 30.0) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_seconds)
        try:
            connection.request("GET", path, headers={"X-API-Key": self.api_key})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServerFailed(
                    f"{COMMAND} serve ended with {self._process.returncode}:\n{self._log_end()}"
                )
            try:
                code, _ = self._get("/healthz", timeout_seconds=5.0)
            except (OSError, http.client.HTTPException):
                code = 0
            if code == 200:
                return
            time.sleep(0.005)
        raise ServerFailed(f"not healthy after {START_SECONDS:.0f} s:\n{self._log_end()}")

    def _log_end(self) -> str:
        return self._log_path.read_text(errors="replace")[-2_000:]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
