"""A worker's end of the connection to its supervisor.

The messages must stay as they are: a supervisor may start workers of a newer release.
"""

import asyncio
import contextlib
import socket
from collections.abc import MutableMapping

import msgspec
from msgspec import Struct

WORKER_VARIABLE = "DUETIME_WORKER"
STOP = b"stop\n"


class WorkerPlace(Struct, frozen=True):
    """The worker's number, and the file descriptors of its end of the connection and of the socket
    to listen on. The supervisor passes them in the environment."""

    number: int
    line: int
    listener: int


class WorkerNews(Struct, frozen=True, omit_defaults=True):
    """A worker's message, as one line of JSON: ready, or the error that keeps it from starting."""

    error: str | None = None


class WorkerLink:
    def __init__(self, place: WorkerPlace) -> None:
        self.number = place.number
        self.listener = socket.socket(fileno=place.listener)
        self._line = socket.socket(fileno=place.line)
        for inherited in (self.listener, self._line):
            inherited.set_inheritable(False)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def tell_ready(self) -> None:
        self._tell(WorkerNews())

    def tell_error(self, message: str) -> None:
        self._tell(WorkerNews(message))

    def stop_when_told(self, stopped: asyncio.Event) -> None:
        """Set the event once the supervisor says so, or is gone and the connection breaks."""
        self._line.setblocking(False)
        loop = asyncio.get_running_loop()

        def hear() -> None:
            heard = b""
            with contextlib.suppress(ConnectionError):
                heard = self._line.recv(64)
            loop.remove_reader(self._line)
            if not heard:
                import structlog

                structlog.get_logger().warning("supervisor.lost")
            stopped.set()

        loop.add_reader(self._line, hear)

    def _tell(self, news: WorkerNews) -> None:
        # The supervisor may be gone.
        with contextlib.suppress(ConnectionError):
            self._line.sendall(msgspec.json.encode(news) + b"\n")


def worker_link(environ: MutableMapping[str, str]) -> WorkerLink | None:
    """The connection to the supervisor that started this process, if one did."""
    text = environ.pop(WORKER_VARIABLE, None)
    return None if text is None else WorkerLink(msgspec.json.decode(text, type=WorkerPlace))
