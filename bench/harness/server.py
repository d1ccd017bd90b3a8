"""The server under test: a real process, used only through its public API."""

import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
import psutil

from bench.harness.child import ROOT
from bench.harness.process_usage import cpu_seconds, family, resident_mb
from bench.stores.store_under_test import StoreUnderTest, Tally
from duetime.domain.namespace import DEFAULT_NAMESPACE

START_SECONDS = 60.0
STOP_SECONDS = 20.0
LOG_NAME = "server.log"
# With PYTHONPATH, the server runs the same source tree as the bare limits.
INHERITED = ("PATH", "HOME", "LANG", "PYTHONPATH")
COMMAND = Path(sys.executable).with_name("duetime")


class ServerFailed(Exception):
    """The server did not start or did not answer. The message quotes the end of its log."""


class NamespaceAnswer(msgspec.Struct, frozen=True):
    counts: dict[str, int]


class Server:
    """`duetime serve` on a free loopback port, with the store under test."""

    def __init__(
        self,
        store: StoreUnderTest,
        *,
        workers: int = 1,
        namespaces: Sequence[str] = (),
        broker_url: str | None = None,
        module: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`module` is one of the bench that serves in place of the command."""
        self.api_key = secrets.token_urlsafe(32)
        self.other_keys: tuple[str, ...] = ()
        self.port = free_port()
        self._store = store
        self._log_path = store.directory / LOG_NAME
        environment = environment_of(store) | {
            "API_KEY": self.api_key,
            "CALLBACK_NETWORKS": "loopback",
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "MIN_DELAY_SECONDS": "0",
            "LOG_LEVEL": "warning",
            **(settings or {}),
        }
        command = [str(COMMAND)]
        if module is not None:
            command = [sys.executable, "-m", module]
            environment["PYTHONPATH"] = str(ROOT)
        if namespaces:
            environment["NAMESPACES"] = ",".join(namespaces)
        if broker_url is not None:
            environment["TIMER_BROKER_URL"] = broker_url
        options = ["--workers", str(workers)] if workers > 1 else []
        started = time.perf_counter()
        with self._log_path.open("ab") as log:
            # No .env file lies in this directory, so nothing changes the settings.
            self._process = subprocess.Popen(
                [*command, "serve", *options],
                cwd=store.directory,
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

    def tally(self) -> Tally:
        return self._store.tally(self)

    def list_page(self, query: str) -> bytes:
        return self.read(f"/timers?{query}")

    def read(self, path: str) -> bytes:
        """The body of a GET. Raises `ServerFailed` unless the status is 200."""
        try:
            code, body = self._get(path)
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailed(f"GET {path}: {error!r}\n{self._log_end()}") from error
        if code != 200:
            raise ServerFailed(f"GET {path} answered {code}: {body[:300]!r}")
        return body

    def send(self, method: str, path: str, body: object) -> dict[str, Any]:
        """The answer to a request with a JSON body. Raises `ServerFailed` unless it is a 2xx."""
        content = msgspec.json.encode(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30.0)
        try:
            connection.request(method, path, content, headers={"X-API-Key": self.api_key})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if not 200 <= answer.status < 300:
            raise ServerFailed(f"{method} {path} answered {answer.status}: {text[:300]!r}")
        return msgspec.json.decode(text, type=dict[str, Any])

    def total(self, status: str) -> int:
        """Timers with the status, from the counts of the namespace."""
        answer = self.read(f"/api/v1/namespaces/{DEFAULT_NAMESPACE}")
        return msgspec.json.decode(answer, type=NamespaceAnswer).counts[status]

    def memory_mb(self) -> float:
        return resident_mb(family(self._watched))

    def cpu_seconds(self) -> float:
        return cpu_seconds(family(self._watched))

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        """Send SIGTERM, then SIGKILL after a grace period."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

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


class ServerCpu:
    """CPU time that servers take from the moment this object is made.

    On a machine whose speed varies, it is steadier than any rate.
    """

    def __init__(self, *servers: Server) -> None:
        self._servers = servers
        self._seconds_before = self._seconds()

    def us_per_timer(self, timers: int) -> float:
        return round(1e6 * (self._seconds() - self._seconds_before) / timers, 1)

    def _seconds(self) -> float:
        return sum(each.cpu_seconds() for each in self._servers)


def environment_of(store: StoreUnderTest) -> dict[str, str]:
    """The settings of the store under test; no other setting comes from this environment."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | dict(store.settings)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
