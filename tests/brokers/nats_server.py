"""A NATS server with JetStream as a child process."""

import shutil
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.brokers.broker_process import HOST, BrokerProcess, find_program, free_port

MISSING = "nats-server is missing: make install brings one"


@cache
def find_nats_server() -> Path | None:
    return find_program("nats-server")


class NatsServer:
    """Keeps its streams and its port across restarts. `directory` must exist and is deleted at the
    end.

    `configuration` is appended to the server's own, for users, permissions or TLS.
    """

    def __init__(self, directory: Path, *, configuration: str = "", jetstream: bool = True) -> None:
        program = find_nats_server()
        assert program is not None, MISSING
        self.port = free_port()
        self._directory = directory
        written = directory / "nats.conf"
        lines = [f'listen: "{HOST}:{self.port}"', configuration]
        if jetstream:
            lines.append(f'jetstream {{ store_dir: "{directory / "streams"}" }}')
        written.write_text("\n".join(lines))
        self.process = BrokerProcess([program, "-c", written], self.port, directory / "log")

    @property
    def url(self) -> str:
        return f"nats://{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self.process.is_running

    @property
    def log(self) -> str:
        return self.process.log

    def start(self) -> None:
        """Return once the server answers."""
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        """SIGKILL, as when the machine loses power."""
        self.process.kill()

    def restart(self) -> None:
        """Kill the server and start it again on the same data."""
        self.kill()
        self.start()

    def pause(self) -> None:
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)
