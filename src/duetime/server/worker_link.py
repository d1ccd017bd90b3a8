"""A worker's end of the line to its supervisor.

The worker says once that it is ready, or why it cannot be. It hears when it has to stop; that the
line breaks means that the supervisor is gone, and is a reason to stop as well. The supervisor may
be of an older release than a worker that it starts, so what is said on the line stays as it is.
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
    """What a worker is told at its start: its number, and the descriptors of its end of the line
    and of the socket to listen on."""

    number: int
    line: int
    listener: int


class WorkerNews(Struct, frozen=True, omit_defaults=True):
    """What a worker says, as one line of JSON: nothing but that it is ready, or an error."""

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
        """Set the event when the supervisor says so, or is gone."""
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
        # A supervisor that is gone has nobody to tell it to.
        with contextlib.suppress(ConnectionError):
            self._line.sendall(msgspec.json.encode(news) + b"\n")


def worker_link(environ: MutableMapping[str, str]) -> WorkerLink | None:
    """The line to the supervisor that started this process, if one did."""
    text = environ.pop(WORKER_VARIABLE, None)
    return None if text is None else WorkerLink(msgspec.json.decode(text, type=WorkerPlace))
